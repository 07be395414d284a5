// The training functions, with the GIL free while a model trains.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>

#include "bindings.h"
#include "options.h"
#include "qkv/classifier_training.h"
#include "qkv/embedder_training.h"
#include "qkv/encoder.h"
#include "qkv/error.h"
#include "qkv/field.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/train.h"
#include "recipe_values.h"

namespace qkv::python {
namespace {

using Measures = std::vector<std::pair<std::string, double>>;

nb::object to_python(const std::string& line) { return text_of(line); }
template <class Report>
nb::object to_python(const Report& report) {
  return nb::cast(report);
}

// Calls Python with what training reports. A true result of on_step or on_evaluation stops training. So does what a
// callable or the handler of a signal raises; the state is saved before rethrow() throws it.
class TrainingReporter {
 public:
  // callables: on_message, on_step and on_evaluation
  explicit TrainingReporter(const nb::tuple& callables) : callables_(callables) {}

  TrainingObserver observer() {
    TrainingObserver observer;
    observer.on_message = [this](const std::string& line) { call(0, line); };
    observer.on_step = [this](const StepReport& report) { call(1, report); };
    observer.on_evaluation = [this](const EvaluationReport& report) { call(2, report); };
    observer.should_stop = [this] {
      keep_error(handle_signals);
      return stop_ || error_;
    };
    return observer;
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <class Report>
  void call(size_t index, const Report& report) {
    keep_error([&] {
      const nb::gil_scoped_acquire gil;
      stop_ |= nb::cast<bool>(callables_[index](to_python(report)));
    });
  }

  // Calls f, unless a call before has failed.
  template <class F>
  void keep_error(F&& f) {
    if (error_) return;
    try {
      f();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  const nb::tuple& callables_;
  bool stop_ = false;
  std::exception_ptr error_;
};

// Calls train(observer), which returns false if training was stopped early.
template <class Train>
bool train_with(const nb::tuple& callables, Train&& train) {
  TrainingReporter reporter(callables);
  bool finished = false;
  {
    const nb::gil_scoped_release release;
    finished = train(reporter.observer());
  }
  reporter.rethrow();
  return finished;
}

// Reads the arguments that all kinds of training share, after those of one kind. init: of these.
RecipeChoice read_choice(OptionReader& reader, const std::string& init, const std::vector<RecipeOption>& options,
                         const nb::dict& values, const char* function) {
  RecipeChoice choice;
  reader("out", choice.out);
  reader("preset", choice.preset);
  reader("config", choice.config);
  reader.finish(function);
  choice.values = recipe_values(options, values, function);
  choice.init = init;
  return choice;
}

// Returns the bytes of a size such as "4G"; 0 for "".
int64_t memory_of(const std::string& size) {
  int64_t bytes = 0;
  if (!size.empty()) try {
      set_quantity(bytes, size, quantity({"", "", between(1, int64_t{1} << 50)}));
    } catch (const Error& error) {
      throw Error(std::string("memory ") + error.what());
    }
  return bytes;
}

bool train_translator(const nb::dict& arguments, const nb::dict& values, const nb::tuple& callables) {
  TranslationFiles files;
  std::string memory;
  OptionReader reader(arguments);
  reader("train", files.train);
  reader("dev", files.dev);
  reader("source_tokenizer", files.source_tokenizer);
  reader("target_tokenizer", files.target_tokenizer);
  reader("init", files.init);
  reader("memory", memory);
  const auto options = recipe_options(translation_preset(kTranslationPreset));
  const RecipeChoice choice = read_choice(reader, files.init, options, values, "train_translator");
  return train_with(callables, [&](const TrainingObserver& observer) {
    return qkv::train_translator(files, translation_recipe(choice), choice.out, observer, memory_of(memory));
  });
}

bool train_recommender(const nb::dict& arguments, const nb::dict& values, const nb::tuple& callables) {
  RecommendationFiles files;
  OptionReader reader(arguments);
  reader("data", files.data);
  reader("columns", files.columns);
  reader("separator", files.separator);
  reader("time_format", files.time_format);
  reader("skip_bad_lines", files.skip_bad_lines);
  reader("init", files.init);
  reader("features", files.features);
  reader("feature_columns", files.feature_columns);
  const auto options = recipe_options(recommendation_preset(kRecommendationPreset));
  const RecipeChoice choice = read_choice(reader, files.init, options, values, "train_recommender");
  return train_with(callables, [&](const TrainingObserver& observer) {
    return qkv::train_recommender(files, recommendation_recipe(choice), choice.out, observer);
  });
}

// Trains on plain text. train(files, choice, observer) is called with the files and the recipe of the arguments.
template <class Files, class Train>
bool train_on_text(const nb::dict& arguments, const nb::dict& values, const nb::tuple& callables,
                   const std::vector<RecipeOption>& options, const char* function, Train&& train) {
  Files files;
  OptionReader reader(arguments);
  reader("text", files.text);
  reader("dev", files.dev);
  reader("tokenizer_model", files.tokenizer);
  reader("init", files.init);
  const RecipeChoice choice = read_choice(reader, files.init, options, values, function);
  return train_with(callables, [&](const TrainingObserver& observer) { return train(files, choice, observer); });
}

bool train_language_model(const nb::dict& arguments, const nb::dict& values, const nb::tuple& callables) {
  return train_on_text<LanguageFiles>(
      arguments, values, callables, recipe_options(language_preset(kLanguagePreset)), "train_language_model",
      [](const LanguageFiles& files, const RecipeChoice& choice, const TrainingObserver& observer) {
        return qkv::train_language_model(files, language_recipe(choice), choice.out, observer);
      });
}

bool train_encoder(const nb::dict& arguments, const nb::dict& values, const nb::tuple& callables) {
  return train_on_text<EncoderFiles>(
      arguments, values, callables, recipe_options(encoder_preset(kEncoderPreset)), "train_encoder",
      [](const EncoderFiles& files, const RecipeChoice& choice, const TrainingObserver& observer) {
        return qkv::train_encoder(files, encoder_recipe(choice), choice.out, observer);
      });
}

// Reads the files of training on rows of texts.
template <class Files>
void read_row_files(OptionReader& reader, Files& files) {
  reader("init", files.init);
  reader("train", files.train);
  reader("dev", files.dev);
  reader("columns", files.columns);
  reader("dev_columns", files.dev_columns);
}

bool train_embedder(const nb::dict& arguments, const nb::dict& values, const nb::tuple& callables) {
  EmbedderFiles files;
  OptionReader reader(arguments);
  read_row_files(reader, files);
  reader("teacher", files.teacher);
  const auto options = recipe_options(embedder_fine_tuning());
  const RecipeChoice choice = read_choice(reader, files.init, options, values, "train_embedder");
  return train_with(callables, [&](const TrainingObserver& observer) {
    return qkv::train_embedder(files, embedder_recipe(choice), choice.out, observer);
  });
}

bool train_classifier(const nb::dict& arguments, const nb::dict& values, const nb::tuple& callables) {
  ClassifierFiles files;
  OptionReader reader(arguments);
  read_row_files(reader, files);
  const auto options = recipe_options(classifier_fine_tuning());
  const RecipeChoice choice = read_choice(reader, files.init, options, values, "train_classifier");
  return train_with(callables, [&](const TrainingObserver& observer) {
    return qkv::train_classifier(files, classifier_recipe(choice), choice.out, observer);
  });
}

// Returns pairs of a name and measures.
std::vector<std::pair<std::string, Measures>> pairs_of(const std::vector<EvaluationReport::Candidate>& candidates) {
  std::vector<std::pair<std::string, Measures>> pairs;
  for (const auto& candidate : candidates) {
    Measures& measures = pairs.emplace_back(candidate.name, Measures()).second;
    for (const auto& measure : candidate.measures) measures.emplace_back(measure.name, measure.value);
  }
  return pairs;
}

}  // namespace

void bind_training(nb::module_& m) {
  nb::class_<StepReport>(m, "StepReport")
      .def_ro("step", &StepReport::step)
      .def_ro("epoch", &StepReport::epoch)
      .def_ro("max_steps", &StepReport::max_steps)
      .def_ro("max_epochs", &StepReport::max_epochs)
      .def_ro("loss", &StepReport::loss)
      .def_ro("nll", &StepReport::nll)
      .def_ro("learning_rate", &StepReport::learning_rate)
      .def_ro("gradient_norm", &StepReport::gradient_norm)
      .def_ro("target_tokens", &StepReport::target_tokens)
      .def_ro("seconds", &StepReport::seconds)
      .def_ro("tokens_per_second", &StepReport::tokens_per_second)
      .def_ro("noise_scale", &StepReport::noise_scale)
      .def_ro("skipped_steps", &StepReport::skipped_steps)
      .def_ro("rollbacks", &StepReport::rollbacks);
  nb::class_<EvaluationReport>(m, "EvaluationReport")
      .def_ro("step", &EvaluationReport::step)
      .def_prop_ro("candidates", [](const EvaluationReport& report) { return pairs_of(report.candidates); })
      .def_prop_ro("baselines", [](const EvaluationReport& report) { return pairs_of(report.baselines); })
      .def_ro("best", &EvaluationReport::best)
      .def_ro("improved", &EvaluationReport::improved);
  m.def("train_translator", train_translator);
  m.def("train_recommender", train_recommender);
  m.def("train_language_model", train_language_model);
  m.def("train_encoder", train_encoder);
  m.def("train_embedder", train_embedder);
  m.def("train_classifier", train_classifier);
}

}  // namespace qkv::python
