// An environment's specification as JSON: what Python allocates, names and packs by.
#pragma once

#include <sstream>

#include "kernel/params.h"
#include "kernel/views.h"

namespace marinenav {

template <class Items, class Write>
void write_list(std::ostream& out, const Items& items, const Write& write) {
  const char* separator = "[";
  for (const auto& item : items) {
    out << separator;
    write(item);
    separator = ", ";
  }
  out << (items.begin() == items.end() ? "[]" : "]");
}

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

inline void write_specs(std::ostream& out, const TensorSpecs& specs) {
  const auto quoted = [&](const std::string& word) { out << '"' << word << '"'; };
  write_list(out, specs, [&](const TensorSpec& spec) {
    const char* number = spec.number == Number::kReal ? "real"
                         : spec.number == Number::kInt ? "int"
                                                       : "bool";
    out << "{\"name\": \"" << spec.name << "\", \"number\": \"" << number << "\", \"shape\": ";
    write_list(out, spec.shape, [&](const Extent& extent) {
      if (extent.name != nullptr) {
        quoted(extent.name);
      } else {
        out << extent.size;
      }
    });
    out << ", \"fields\": ";
    write_list(out, words_of(spec.fields), quoted);
    out << "}";
  });
}

template <class Env>
std::string describe() {
  std::ostringstream out;
  out << "{\"params\": ";
  write_list(out, param_names<Env>(), [&](const std::string& name) { out << '"' << name << '"'; });
  const std::pair<const char*, TensorSpecs> lists[] = {{"state", Env::state()},
                                                       {"tables", Env::tables()},
                                                       {"observation", Env::observation()},
                                                       {"results", StepView<float>::specs()}};
  for (const auto& [name, specs] : lists) {
    out << ", \"" << name << "\": ";
    write_specs(out, specs);
  }
  out << ", \"continuous\": " << Env::kContinuous << ", \"discrete\": " << Env::kDiscrete
      << ", \"unrolls\": " << (Env::kUnrolls ? "true" : "false") << "}";
  return out.str();
}

}  // namespace marinenav
