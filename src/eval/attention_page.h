// The attention page up to its data: style and skeleton. What runs in it is attention_script.h.
#pragma once

#include <string_view>

namespace qkv {

inline constexpr std::string_view attention_page = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Attention</title>
<style>
:root {
  --page: #f4f5f7; --panel: #ffffff; --line: #dfe3e9; --text: #1d2430; --faint: #667085; --accent: #c2570c;
  --ramp: #eef2f6, #c6dbec, #85b8dc, #3d86c0, #195494, #0a2653;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1116; --panel: #161b22; --line: #2b323d; --text: #e3e8ef; --faint: #95a0b1; --accent: #f5a35c;
    --ramp: #1e252f, #1d3d5c, #22608f, #3b8fc6, #86c5ea, #eaf7ff;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 26px 28px 40px; }
h1 { margin: 0 0 12px; font-size: 21px; font-weight: 650; letter-spacing: -.01em; }
h2 { margin: 0; font-size: 15px; font-weight: 600; }
button, input { font: inherit; color: inherit; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.sentences { display: grid; grid-template-columns: auto 1fr; gap: 4px 16px; margin: 0 0 22px; }
.sentences dt { color: var(--faint); }
.sentences dd { margin: 0; max-height: 7.5em; overflow: auto; overflow-wrap: anywhere; }
.bar { display: flex; flex-wrap: wrap; gap: 10px 24px; align-items: center; border-bottom: 1px solid var(--line); }
[role=tablist] { display: flex; flex-wrap: wrap; gap: 4px; }
[role=tab] { margin-bottom: -1px; padding: 8px 14px; border: 0; border-bottom: 2px solid transparent; background: none;
  color: var(--faint); cursor: pointer; }
[role=tab]:hover { color: var(--text); }
[role=tab][aria-selected=true] { border-color: var(--accent); color: var(--text); font-weight: 600; }
.bar label { margin-left: auto; padding: 6px 0; cursor: pointer; }
.bar input { margin: 0 8px 0 0; accent-color: var(--accent); vertical-align: -1px; }
#about { margin: 14px 0 18px; color: var(--faint); max-width: 82ch; }
.views { display: flex; flex-wrap: wrap; gap: 20px; align-items: flex-start; }
.panel { padding: 18px 20px; border: 1px solid var(--line); border-radius: 12px; background: var(--panel); }
.heads { flex: 0 1 auto; min-width: 0; max-width: 100%; overflow-x: auto; }
.one { flex: 1 1 480px; min-width: 0; max-width: 100%; }
#grid { display: grid; gap: 7px; margin-top: 12px; width: max-content; align-items: center; text-align: center; }
#grid span { color: var(--faint); font-size: 12.5px; min-width: 1.2em; }
#grid button { position: relative; width: var(--thumb); height: var(--thumb); padding: 0; border: 0; border-radius: 4px;
  background: none; cursor: pointer; }
#grid .mean { margin-left: 10px; }
#grid canvas { display: block; width: 100%; height: 100%; border-radius: 3px; image-rendering: pixelated;
  box-shadow: 0 0 0 1px var(--line); }
#grid button:hover canvas { box-shadow: 0 0 0 2px var(--faint); }
#grid [aria-pressed=true] canvas { box-shadow: 0 0 0 3px var(--accent); }
.hint { margin: 14px 0 0; color: var(--faint); font-size: 13px; max-width: 44ch; }
.title { display: flex; flex-wrap: wrap; gap: 4px 20px; justify-content: space-between; align-items: flex-end; }
.legend { width: 210px; font-size: 11.5px; color: var(--faint); }
#scale { height: 8px; border-radius: 4px; }
#ticks { position: relative; height: 15px; }
#ticks span { position: absolute; transform: translateX(-50%); }
#reading { margin: 12px 0 14px; padding: 10px 12px; border-radius: 8px; background: var(--page); }
#readout { font-variant-numeric: tabular-nums; font-weight: 600; overflow-wrap: anywhere; }
#readout bdi { color: var(--accent); }
#chips { max-height: 7.2em; overflow: auto; margin: 3px -2px 0; padding: 2px; line-height: 1.75; }
#chips > span { display: inline-block; padding: 0 5px; margin: 1px 3px 1px 0; border-radius: 4px; white-space: pre; }
#chips .here { box-shadow: 0 0 0 2px var(--accent); }
#map { display: grid; grid-template-columns: max-content max-content; width: max-content; max-width: 100%;
  max-height: max(420px, 82vh); overflow: auto; font-size: var(--label); }
#corner, #columns, #rows { position: sticky; background: var(--panel); }
#corner { top: 0; left: 0; z-index: 3; display: flex; align-items: flex-end; justify-content: flex-end; padding: 0 8px;
  color: var(--faint); font-size: 11.5px; }
#columns { top: 0; z-index: 2; display: flex; padding-top: 4px; }
#rows { left: 0; z-index: 1; }
#columns div { width: var(--cell); display: flex; flex-direction: column; align-items: center; justify-content: flex-end; }
#columns span { writing-mode: vertical-rl; text-orientation: sideways; transform: rotate(180deg); line-height: 1;
  max-height: 9.5em; overflow: hidden; white-space: pre; }
#columns i { width: calc(var(--cell) - 3px); height: 34px; margin: 5px 0 3px; border-bottom: 1px solid var(--line);
  background: linear-gradient(var(--accent), var(--accent)) bottom / 100% calc(var(--weight) * 100%) no-repeat; }
#rows div { height: var(--cell); line-height: var(--cell); max-width: 11em; padding: 0 8px 0 2px; text-align: right;
  overflow: hidden; text-overflow: ellipsis; white-space: pre; }
#rows .here, #columns .here { color: var(--accent); font-weight: 700; }
.more { color: var(--faint); font-weight: 400; }
#cells { position: relative; cursor: crosshair; }
#cells canvas { display: block; }
#cells div { position: absolute; pointer-events: none; border-radius: 3px; box-shadow: inset 0 0 0 2px var(--accent); }
#row { opacity: .55; }
#cell { scroll-margin: 180px 30px 30px 150px; }
</style>
</head>
<body>
<main>
<h1>Attention</h1>
<dl class="sentences"><dt>Source</dt><dd id="source" dir="auto"></dd><dt>Target</dt><dd id="target" dir="auto"></dd></dl>
<div class="bar"><div role="tablist" aria-label="Kind of attention" id="tabs"></div>
<label><input type="checkbox" id="words">whole words</label></div>
<p id="about"></p>
<div class="views" role="tabpanel" aria-labelledby="about">
<section class="panel heads" aria-label="All layers and heads">
<h2>Layers and heads</h2>
<div id="grid" role="group" aria-label="Layers and heads"></div>
<p class="hint">Choose a map by click or arrow keys. <span id="dot">A dot marks a piece that goes on with a word.</span></p>
</section>
<section class="panel one" aria-label="The chosen map">
<div class="title"><h2 id="name"></h2>
<div class="legend" aria-hidden="true"><div id="scale"></div><div id="ticks"></div></div></div>
<div id="reading"><div id="readout" aria-live="polite"></div><div id="chips" dir="auto"></div></div>
<div id="map" tabindex="0" role="application" aria-label="Attention weights: move with the arrow keys" aria-describedby="readout">
<div id="corner">weight</div><div id="columns" aria-hidden="true"></div>
<div id="rows" aria-hidden="true"></div>
<div id="cells"><canvas></canvas><div id="row"></div><div id="cell"></div></div>
</div>
</section>
</div>
<noscript><p>This page draws with JavaScript, which is switched off.</p></noscript>
</main>
)html";

}  // namespace qkv
