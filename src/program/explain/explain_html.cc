// The steps of an explanation as a page, made of the files in src/program/explain/assets. The page computes the steps itself
// when a number changes; a test compares them with the library's.
#include "core/placeholders.h"
#include "program/explain/assets/explain.css.h"
#include "program/explain/assets/explain.html.h"
#include "program/explain/assets/explain_math.js.h"
#include "program/explain/assets/explain_view.js.h"
#include "qkv/explain.h"

namespace qkv {

std::string explanation_to_html(const ExplainInput& input) {
  const std::string script = std::string(kExplainMathJs).append(kExplainViewJs);
  return fill_in(
      kExplainHtml,
      {{"{{style}}", kExplainCss}, {"{{data}}", inside_script(explain_input_to_json(input))}, {"{{script}}", script}});
}

}  // namespace qkv
