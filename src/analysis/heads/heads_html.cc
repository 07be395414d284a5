// qkv::heads_to_html: the report as a self-contained page, made of the files in src/analysis/heads/assets and of the
// style of the attention page.
#include "analysis/heads/assets/heads.css.h"
#include "analysis/heads/assets/heads.html.h"
#include "analysis/heads/assets/heads.js.h"
#include "core/placeholders.h"
#include "eval/assets/attention.css.h"
#include "qkv/heads.h"

namespace qkv {

std::string heads_to_html(const HeadsReport& report) {
  const std::string style = std::string(kAttentionCss).append(kHeadsCss);
  return fill_in(kHeadsHtml,
                 {{"{{style}}", style}, {"{{data}}", inside_script(heads_to_json(report))}, {"{{script}}", kHeadsJs}});
}

}  // namespace qkv
