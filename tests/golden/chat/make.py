"""Renders templates as transformers does: make.py

cases.json has small templates with their text, or the error where jinja2 refuses the template; of an error only the text
of raise_exception is compared. ids.json has conversations with their text and tokens, with the tokenizers of
../tokenizers. It needs transformers with tokenizers.
"""
import json
from datetime import datetime, timezone
from pathlib import Path

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = Path(__file__).resolve().parent
NOW = datetime(2026, 7, 26, 12, 34, 56, tzinfo=timezone.utc)


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = NOW.strftime

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a \"city\" — now\n",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "name of the city", "enum": ["Köln", "東京", "a<b>&'c'"]},
                "days": {"type": ["integer", "null"], "default": 3, "minimum": 0.5, "maximum": 1e20},
            },
            "required": ["city"],
            "strict": True,
        },
    },
}
MESSAGES = [
    {"role": "system", "content": " Be brief.\t"},
    {"role": "user", "content": "Straße <b>& \"x\" 'y' 🐕\r\n2"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
    {"role": "tool", "content": "3", "name": "f"},
    {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]},
]
VARIABLES = {
    "messages": MESSAGES, "tools": [TOOL, TOOL], "none_value": None, "empty": "", "text": " Hello, wörld ",
    "numbers": [3, 1, 2, -5, 2.5], "words": ["b", "A", "c", "a"], "flag": True, "zero": 0, "half": 0.5,
    "pairs": {"b": 2, "a": 1, "C": 3}, "bos_token": "<s>", "eos_token": "</s>", "nested": {"x": {"y": [1, {"z": "deep"}]}},
}

# Expressions, printed alone.
EXPRESSIONS = r"""
1 + 2 * 3 - 4 | 7 // 2 | 7 % 3 | 2 ** 10
-7 // 2
-7 % 3
7 % -3
-7.5 // 2
7.5 % -2
1 / 3
2 / 2
2 ** -1
2 ** 0.5
2 ** 3 ** 2
-2 ** 2
- - 3
+ true
1e3
1.5e-7
1e16
123456789.125
1e22
0.1 + 0.2
100000000000000000.0
1_000 + 1
true + 1
none
None
True
false
[1, 'a', none, true, 1.0, [], {}, ()]
(1,)
(1, 2)
()
1, 2
{'a': 1, "b": [1, 2], 3: 'c', none: 1}
['it\'s', "say \"hi\"", 'both \' and "', '\n\t\\', 'ü 日本 🐕', '\x00\x7f\u200b\u00a0']
'a' 'b' "c"
'a\
b'
'\u00fc\x41\101\q'
'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1]
'a' ~ 'b' + 'c'
1 ~ 2 + 3
'ab' * 3
3 * 'ab'
[1] * 2
[1] + [2]
(1,) + (2,)
'%s is %d and %r, %.2f%%' % ('x', 3, 'y', 1.005)
'%s' % 'one'
'abc' < 'abd'
[1, 2] < [1, 3]
1 < 2 < 3
1 < 3 < 2
1 == 1.0
1 == true
'1' == 1
none == none
undefined_name == other_name
undefined_name != 1
undefined_name
not undefined_name
undefined_name is defined
undefined_name | default('x')
undefined_name or 'y'
none | default('x')
none | default('x', true)
'' | default('x', boolean=true)
messages[0].missing
messages[0].missing is defined
messages[99] is defined
messages[0]['role']
messages[0].role
messages[-1].content[0].text
messages[0].get('role')
messages[0].get('nope')
messages[0].get('nope', 'dflt')
pairs.items() | list
pairs.keys() | list
pairs.values() | list
pairs.items
pairs['items'] is defined
pairs | items | list
pairs | dictsort
pairs | dictsort(true)
pairs | dictsort(by='value', reverse=true)
pairs | list
pairs | length
'a' in pairs
'z' not in pairs
2 in [1, 2]
'ell' in 'hello'
not 'x' in 'abc'
1 if flag else 2
1 if zero else 2
1 if zero
(1 if zero) is defined
'a' if flag else 'b' if zero else 'c'
flag and zero
flag and 'x'
zero or 'x'
zero or none or ''
not flag
text | trim
text | upper
text | lower
text | title
text | capitalize
text.strip()
text.strip(' Hd')
text.lstrip()
text.rstrip()
text.upper()
text.title()
text.capitalize()
text.swapcase()
'straße'.upper()
'ǆ'.title()
'ΑΣ'.lower()
"they're bill's friends".title()
"foo-bar (baz) [qux]" | title
'a,b,,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'  a  b c '.split()
'  a  b c '.split(none, 1)
'  a  b c '.rsplit(none, 1)
'  a  b c '.split(maxsplit=0)
''.split()
''.split(',')
'abc'.split('')
'a\nb\r\nc\x0bd\n'.splitlines()
'a\nb\r\n'.splitlines(true)
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'abc'.startswith('b', 1)
'aXbX'.replace('X', '-')
'aXbX'.replace('X', '-', 1)
'ab'.replace('', '-')
'ab' | replace('a', 1)
'hello'.find('l')
'hello'.rfind('l')
'hello'.find('z')
'wörld'.find('l')
'hello'.index('z')
'hello'.count('l')
'hello'.count('')
','.join(['a', 'b'])
','.join([1])
'a-b'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('x')
'12'.isdigit()
'²'.isdigit()
'½'.isnumeric()
'١'.isdecimal()
'ab1'.isalnum()
'aü'.isalpha()
'ABC'.isupper()
'abc1'.islower()
' \t'.isspace()
''.isspace()
'abc'.center(8, '*')
'abcd'.center(7) ~ '|'
'ab'.ljust(4, '.')
'ab'.rjust(4)
'-42'.zfill(6)
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'{} and {}'.format(1, 'b')
'{1} {0} {name} {{}}'.format('a', 'b', name='c')
'hello'[1]
'hello'[-1]
'hello'[9] is defined
'hello'[1:3]
'hello'[::-1]
'wörld'[1]
'wörld'[:2]
numbers[1:]
numbers[:-1]
numbers[::2]
numbers[::-1]
numbers[10:]
(1, 2, 3)[1:]
messages[1:] | length
messages[:2] | map(attribute='role') | list
numbers | sort
numbers | sort(reverse=true)
words | sort
words | sort(case_sensitive=true)
words | sort | join('')
messages | sort(attribute='role') | map(attribute='role') | join(' ')
numbers | min
numbers | max
words | min
numbers | sum
messages | length
messages | count
numbers | first
numbers | last
[] | first
([] | first) is defined
numbers | reverse | list
'abc' | reverse
words | unique | list
words | join(', ')
messages | join('|', attribute='role')
numbers | map('string') | list
words | map('upper') | join
words | map('replace', 'a', 'x') | list
messages | selectattr('role', 'equalto', 'user') | list | length
messages | selectattr('tool_calls', 'defined') | map(attribute='role') | list
messages | rejectattr('role', 'in', ['user', 'system']) | map(attribute='role') | list
messages | selectattr('role', '==', 'user') | first
numbers | select('odd') | list
numbers | select('>', 1) | list
numbers | reject('number') | list
messages | groupby('role') | map('first') | list
[1, 2, 3, 4, 5] | batch(2) | list
[1, 2, 3] | batch(2, 'x') | list
messages | map(attribute='name', default='-') | list
messages | selectattr('role', 'equalto', 'user')
(messages | selectattr('role', 'equalto', 'x')) and true
3.7 | int
'42' | int
' 42 ' | int
'4.7' | int
'x' | int
'x' | int(7)
'ff' | int(0, 16)
'1.5' | float
'x' | float
1 | float
-3 | abs
2.5 | round
3.5 | round
2.675 | round(2)
1234.5 | round(-2)
42 | round
2.1 | round(0, 'ceil')
2.9 | round(method='floor')
12 | string ~ 'x'
'a\nb\n\nc' | indent
'a\nb' | indent(2, true)
'a\n\nb' | indent(2, blank=true)
'a\nb' | indent('> ')
'<a href="x">&\'' | e
'<a>' | safe
'<a>' | escape | length
'hello world foo' | truncate(9)
'hello world foo' | truncate(9, true)
'hello world foo' | truncate(9, false, '…', 0)
'a b_c d-e' | wordcount
'%s-%s' | format('a', 1)
'x' | center(5) ~ '|'
text | length
'日本' | length
none | length
'x' is string
1 is string
1 is number
1.0 is number
true is number
true is boolean
1 is integer
true is integer
1.0 is float
none is none
pairs is mapping
numbers is mapping
numbers is sequence
'x' is sequence
pairs is sequence
1 is sequence
numbers is iterable
1 is iterable
3 is odd
4 is even
6 is divisibleby 3
6 is divisibleby(4)
'a' is in ['a']
3 is eq 3
3 is not eq 3
3 is gt 2
3 is lessthan 2
none is sameas none
'ABC' is upper
'abc' is lower
flag is true
flag is false
range is callable
'x' is callable
none is not none
numbers is not string and flag
messages[0] is defined and messages[0].role == 'system'
'upper' is filter
'odd' is test
range(3) | list
range(2, 8, 3) | list
range(5, 0, -2) | list
range(3)[1]
dict(a=1, b=2)
dict({'x': 1}, y=2)
dict([('k', 'v')])
namespace(a=1).a
namespace(a=1).b is defined
tools[0] | tojson
tools | tojson
tools[0] | tojson(indent=2)
tools[0].function.parameters | tojson(indent=4)
tools[0] | tojson(sort_keys=true)
tools[0] | tojson(ensure_ascii=true)
tools[0] | tojson(separators=(',', ':'))
[] | tojson(indent=2)
{} | tojson(indent=2)
{'a': []} | tojson(indent='\t')
{1: 'a', none: 2, true: 3, 1.5: 4} | tojson
'a"b\\c/\n\r\t\x08\x0c\x01\x7f' | tojson
(1, 2) | tojson
1.0 | tojson
none | tojson
text | tojson
undefined_name | tojson
messages | tojson
messages
tools[0].function
nested.x.y[1].z
nested['x']['y'][0]
nested.x.y.0
nested.x.missing.deeper
undefined_name.x
undefined_name['x']
undefined_name()
undefined_name + 1
undefined_name ~ 'x'
1 + 'a'
'a' + 1
none + 'a'
'a' - 'b'
[1] + (2,)
1 < 'a'
none < 1
'a' in 1
1 in 'a'
1 / 0
1 % 0
'x' | nofilter
'x' is notest
none.x
none['x'] is defined
1[0] is defined
text.nomethod is defined
text.nomethod()
messages.append(1)
pairs.update({'x': 1})
pairs.pop('a')
''.__class__
''.__class__.__mro__
''['__class__']
messages.__class__.__name__
'a' | attr('upper')
messages[0] | attr('role') is defined
strftime_now('%d %b %Y')
raise_exception('the template refuses: "x"')
'x' | upper | lower | trim
'x'|upper~'y'|upper
-1 | abs
(-1) | abs
not 1 == 2
1 in [1] and 2 not in [1]
{'a': {'b': 1}}.a.b
{'a':{'b':{}}}
[x for x in y]
1 +
(1
{'a': }
messages[0
'unclosed
3 is divisibleby 2 or flag
[1, 2,]
{'a': 1,}
'a' 'b' | upper
"\"" ~ '\''
'tab\tnew\nline'
9223372036854775807
1.0 == 1 and [1.0] == [1]
(numbers | select('gt', 100) | list) == []
messages[0] == messages[0]
loop is defined
'%' ~ '%d' % 3
numbers | map('abs') | sum
'abc' | list
'abc' | first
'abc' | last
pairs | first
words[numbers[1]]
1.5 | int + 1
'a' | default | upper
(text | trim).split(' ')[0]
'x'.join('abc')
['a', 'b'] | join(undefined_name)
"a" * 0 ~ '|'
[none, undefined_name] | select('defined') | list
'abc' | replace('b', '')
messages | map(attribute='content') | select('string') | list | length
messages | map(attribute='content.0.text') | list
{'b': 1, 'a': 2} | tojson
{'b': 1, 'a': 2} | dictsort | list
flag | string
[true, false] | tojson
'a'.upper().lower()
'Hello'.casefold()
'a\tb'.split('\t')
3 == 3.0 and 3 is integer
'\u2028'.splitlines() | length
'q' if 'q' in 'quit' else raise_exception('never')
"{:>5}" ~ '{}'
"it's" | tojson
['a', ['b']] | string
""".strip("\n").split("\n")
EXPRESSIONS = [e for e in EXPRESSIONS if e != "b'"]  # the second line of a string

# Whole templates.
TEMPLATES = [
    "a\n{% if true %}\n  b\n{% endif %}\nc\n", "  {% if true %}x{% endif %}  y", "x  {% if true %}  y  {% endif %}  z\n",
    "x\n  {%- if true -%}\n  y\n  {%- endif -%}\n  z", "  {%+ if true %}x{% endif +%}\ny", "{{ 1 }}\n{{ 2 }}\n\n", "{{- 1 -}}  \n  {{- 2 }}",
    "a {# comment #} b\n  {# comment #}\nc", "a\n{#- c -#}\n b", "a\n  {#+ c #}\nb", "{# a\n b #}x\r\ny\rz\n", "{% raw %}{{ x }}{% endraw %}",
    "a\n  {% raw %}\n {{ x }} {% endraw %}\n b", "{%- raw -%}  {{ {% x %} {%- endraw -%}  z", "\n\n", "x\n", "x\n\n", "{{ 'a\nb' }}", "{ { {a} %} }} #}",
    "{%- for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for n in numbers %}{{ loop.previtem | default('-') }}<{{ n }}>{{ loop.nextitem | default('-') }} {% endfor %}",
    "{% for n in numbers %}{{ loop.cycle('odd', 'even') }}{{ loop.changed(n > 2) }} {% endfor %}",
    "{% for n in numbers if n > 1 %}{{ n }}/{{ loop.length }} {% else %}none{% endfor %}", "{% for n in [] %}x{% else %}empty{% endfor %}",
    "{% for n in undefined_name %}x{% else %}empty{% endfor %}", "{% for n in none_value %}x{% endfor %}", "{% for n in 3 %}x{% endfor %}",
    "{% for k, v in pairs.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in pairs %}{{ k }}{% endfor %}", "{% for c in 'aü🐕' %}{{ c }}.{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3)), (4, (5, 6))] %}{{ a }}{{ b }}{{ c }} {% endfor %}", "{% for a, b in [(1,)] %}x{% endfor %}",
    "{% for n in numbers %}{% if n == 2 %}{% break %}{% endif %}{{ n }}{% endfor %}", "{% for n in numbers %}{% if n == 1 %}{% continue %}{% endif %}{{ n }} {% endfor %}",
    "{% for i in range(2) %}{% for j in range(2) %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for i in range(3) %}{% set x = i %}{% endfor %}{{ x is defined }}", "{% set x = 1 %}{% for i in range(3) %}{{ x }}{% set x = i * 10 %}{{ x }} {% endfor %}{{ x }}",
    "{% set ns = namespace(n=0, found=false) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% if i == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }}{{ ns.found }}",
    "{% set x = {'a': 1} %}{% set x.a = 2 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set t = 1, 2 %}{{ t }}", "{% set x %}  a {{ 1 + 1 }} b\n{% endset %}[{{ x }}]",
    "{% set x | upper | trim %} abc {% endset %}[{{ x }}]", "{% if true %}{% set x = 5 %}{% endif %}{{ x }}", "{% if zero %}a{% elif flag %}b{% else %}c{% endif %}",
    "{% if undefined_name %}a{% else %}b{% endif %}", "{% if messages and not zero and (tools or none_value) %}y{% endif %}",
    "{% macro f(a, b=2, c='x') %}[{{ a }},{{ b }},{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(1, c='z') }}{{ f(b=5, a=0) }}{{ f() }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(x=2) }}", "{% macro f(a) %}{{ a.b }}{% endmacro %}{{ f() }}",
    "{% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(5) }}",
    "{% set y = 1 %}{% macro f() %}{{ y }}{% endmacro %}{{ f() }}{% set y = 2 %}{{ f() }}", "{% macro f() %}{% set y = 1 %}{% endmacro %}{{ f() }}{{ y is defined }}",
    "{% macro wrap() %}<{{ caller() }}>{% endmacro %}{% call wrap() %}in{% endcall %}", "{% macro each(l) %}{% for x in l %}{{ caller(x) }};{% endfor %}{% endmacro %}{% call(v) each([1, 2]) %}v={{ v }}{% endcall %}",
    "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}", "{% filter upper %}a{{ text }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}banana{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}",
    "{% generation %}x{{ 1 }}{% set y = 2 %}{% endgeneration %}{{ y is defined }}", "{%- set messages = messages[1:] -%}{{ messages | length }}",
    "{% if messages[0]['role'] == 'system' %}{% set s = messages[0]['content'] %}{% set loop_messages = messages[1:] %}{% endif %}{{ s | trim }}{{ loop_messages | length }}",
    "{%- for message in messages[::-1] %}{%- set index = (messages | length - 1) - loop.index0 %}{{ index }}:{{ message.role }} {% endfor %}",
    "{%- for m in messages %}{%- if m.content is string %}{{ m.content | trim }}{%- else %}{%- for part in m.content if part.type == 'text' %}{{ part.text }}{% endfor %}{% endif %}\n{%- endfor %}",
    "{%- set content = messages[2].content %}{%- if '</think>' in content %}{%- set r = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}{{ r }}|{{ content }}",
    "{%- macro render(t) -%}{%- if t is mapping -%}{ {%- for k, v in t.items() -%}{{ k }}: {{ render(v) }}{{ ', ' if not loop.last }}{%- endfor -%} }{%- elif t is string -%}{{ t }}{%- elif t is iterable -%}[{%- for v in t -%}{{ render(v) }}{{ ', ' if not loop.last }}{%- endfor -%}]{%- else -%}{{ t }}{%- endif -%}{%- endmacro -%}{{ render(tools[0]) }}",
    "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% endfor %}",
    "{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.x }}{{ ns.y }}", "{% set ns = namespace(a=1) %}{% macro f() %}{% set ns.a = 9 %}{% endmacro %}{{ f() }}{{ ns.a }}",
    "{% for m in messages %}{{ loop.index if not loop.last else 'end' }},{% endfor %}", "{{ [1, 2, 3][1:] }}{{ 'abc'[1:] }}{{ {'a': [1]}['a'][0] }}",
    "{% set x = messages | selectattr('role', 'equalto', 'user') %}{{ x | list | length }}{{ x | list | length }}",
    "{% set x = numbers | select('odd') %}{{ x | first }}{{ x | first }}{{ x | list }}", "{% set x = numbers | map('abs') %}{{ 'y' if x }}{% for n in x %}{{ n }} {% endfor %}{% for n in x %}{{ n }}{% endfor %}",
    "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% endif %}", "{% if %}x{% endif %}", "{% if true %}", "{% for x in [1] %}", "{{ x", "{% foo %}", "{% break %}", "{{ }}", "{% set %}", "{% set 1 = 2 %}",
    "{% else %}", "{{ 1 }} }}", "{% if true %}a{% else %}b{% elif true %}c{% endif %}", "{% for loop in [1] %}x{% endfor %}",
    "{{ messages.__init__ }}", "{{ namespace.__init__.__globals__ }}", "{{ raise_exception.__globals__ }}", "{{ ''.__class__.__base__.__subclasses__() }}",
    "{{ 'x'.format.__globals__ }}", "{% set x = [] %}{% set _ = x.append(1) %}{{ x }}",
    "{% for i in range(200000) %}{% endfor %}", "{{ 'a' if 1 > 2 }}b", "{% if 'a' is in ['a', 'b'] %}y{% endif %}", "{% if not messages[0].role is defined %}a{% else %}b{% endif %}",
    "{% if messages is string or messages is not defined %}a{% else %}b{% endif %}", "{{ '<|' + messages[0]['role'] + '|>' }}", "{%if flag%}a{%else%}b{%endif%}", "{{'x'}}{{-'y'}}{%- if flag -%} z {%- endif -%}",
    "{% set date = strftime_now('%d %b %Y') if strftime_now is defined else '26 Jul 2024' %}{{ date }}", "{{ dict(messages[0], content='x') | tojson }}", "{% set d = dict(a=1) %}{{ d.a }}{{ d['a'] }}",
    "{% for k, v in tools[0].function.parameters.properties | dictsort %}{{ k }}{{ v.type }}{% endfor %}", "{% for k, v in tools[0].function.parameters.properties | items %}{{ k }}: {{ v | tojson }}\n{% endfor %}",
    "a{% for i in [1] -%}  \n b {%- endfor %}  c", "\t {% set x = 1 %}\n {{ x }}", " {# c #} x", "{% set x = 'a' %}\n\n{{ x }}", "{%- if true %}\n\n  a\n\n{%- endif %}\n", "x{%- set y = 1 %}\n z",
    "{% macro m(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ m('a') }}]", "{{ '\\n' }}{{ \"\\n\" }}\\n", "{%- for i in range(3) %}\n{{ i }}\n{%- endfor %}\n", "{% if true %}\n{% endif %}\n\n{% if true %}\n{% endif %}", "\u00a0{%- if true %}x{% endif %}\u3000\n",
    "{% for m in messages %}\n    {% if loop.first %}\n        {{ bos_token }}\n    {% endif %}\n    {{ m.role }}\n{% endfor %}\n", "{% for a in words %}{% for b in words %}{% if b == 'A' %}{% break %}{% endif %}{{ a ~ b }} {% endfor %}{% endfor %}",
]


def case_of(template):
    case = {"template": template}
    try:
        case["text"] = environment.from_string(template).render(**VARIABLES)
    except jinja2.exceptions.TemplateError as error:
        case["error"] = str(error) if type(error) is jinja2.exceptions.TemplateError else ""
    except Exception:
        case["error"] = ""
    return case


cases = [case_of("{{ " + expression + " }}") for expression in EXPRESSIONS] + [case_of(t) for t in TEMPLATES]
cases = [case for case in cases if " at 0x" not in case.get("text", "")]  # objects without a text of their own
text = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
variables = json.dumps(VARIABLES, ensure_ascii=True)
(HERE / "cases.json").write_text('{"variables": ' + variables + ',\n"cases": [\n' + text + "\n]}\n", encoding="utf-8")

from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content | trim + '<|im_end|>' }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is false %}<think>{% endif %}{% endif %}"
)
BEGIN = "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{{ eos_token }}{% endfor %}[assistant]"
SPACES = "{% for m in messages %}    {{ m.content }}  {% endfor %}"
TOKENIZERS = {
    "qwen2": (CHATML, {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}),
    "llama3": (BEGIN, {"bos_token": "<|begin_of_text|>", "eos_token": "<|endoftext|>"}),
    "digits": (SPACES, {"eos_token": "<|endoftext|>"}),
}
CHATS = [
    ([{"role": "user", "content": "Hello, who are you?"}], {}),
    ([{"role": "system", "content": " Brief. "}, {"role": "user", "content": "Why?  <b>&amp; \u00fc \u65e5\u672c \U0001f415\r\n 12345"}], {}),
    ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b\n"}, {"role": "user", "content": "the  word"}], {}),
    ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "I am "}], {"continue_final_message": True}),
    ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], {"add_generation_prompt": False}),
    ([{"role": "user", "content": "think"}], {"enable_thinking": False}),
]
conversations = []
for name, (template, tokens) in TOKENIZERS.items():
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(HERE.parent / "tokenizers" / f"{name}.json"), **tokens)
    tokenizer.chat_template = template
    for messages, options in CHATS:
        given = {"add_generation_prompt": not options.get("continue_final_message"), **options}
        text = tokenizer.apply_chat_template(messages, tokenize=False, **given)
        ids = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, **given)
        conversations.append({"tokenizer": name, "template": template, "tokens": tokens, "messages": messages,
                              "options": options, "text": text, "ids": ids})
lines = ",\n".join(json.dumps(c, ensure_ascii=True) for c in conversations)
(HERE / "ids.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
