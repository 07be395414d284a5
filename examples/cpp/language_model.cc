// Trains a language model of characters on a text, and continues a prompt: language_model TEXT RUN PROMPT [STEPS]
#include <iostream>
#include <string>
#include <string_view>

#include "qkv/qkv.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: language_model TEXT RUN PROMPT [STEPS]\n";
    return 2;
  }
  const std::string text = argv[1], run = argv[2], prompt = argv[3];
  try {
    // Returns at once if the run is complete, and resumes it if it was stopped.
    const auto recipe =
        qkv::language_recipe({.preset = "lm-small", .values = {{"max_steps", argc > 4 ? argv[4] : "1000"}}});
    qkv::TrainingObserver observer;
    observer.on_step = [](const qkv::StepReport& step) {
      if (step.step % 100 == 0) std::cout << "step " << step.step << "  loss " << step.loss << "\n";
    };
    qkv::train_language_model({.text = {text}}, recipe, run, observer);

    qkv::GenerateOptions options;
    options.max_tokens = 200;
    options.temperature = 0.8;
    options.on_text = [](std::string_view piece) { std::cout << piece << std::flush; };
    std::cout << prompt;
    qkv::Generator(run).generate(prompt, options);
    std::cout << "\n";
  } catch (const qkv::Error& error) {
    std::cerr << "language_model: " << error.what() << "\n";
    return 1;
  }
}
