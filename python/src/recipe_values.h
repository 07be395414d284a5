// Values of a recipe from Python, by the descriptions that the command line uses.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "qkv/training.h"

namespace qkv::python {

// Returns name, type, default and help of each option, as dicts.
nanobind::list recipe_fields(const std::vector<RecipeOption>& options);

// Returns the values of a dict of keyword arguments. Throws Error, naming the option, for a value of a wrong type, and
// TypeError for an unknown name; `function` is the name of the Python function in errors.
RecipeValues recipe_values(const std::vector<RecipeOption>& options, const nanobind::dict& values,
                           const char* function);

}  // namespace qkv::python
