// Run-time parameters by name. An environment's Params<T> is a struct of groups; its
// each_group(visit) calls visit(group name, group), its derive(Params<double>) computes what follows
// from them. Units and sources stand in marinenav_env/config.py.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "kernel/fields.h"

namespace marinenav {

#define MN_EPISODE(X, XS) X(max_steps) X(stop_on_collision) X(stop_on_end)
/// When an episode ends, in every environment: decisions, and at the first failure of a robot, or
/// the first end of one (0, 1).
MN_PARAMS(EpisodeParams, MN_EPISODE)
#undef MN_EPISODE

/// Names as Python has them, "group.name" or "group.name.index", in the order of `unpack_params`.
template <class Env>
std::vector<std::string> param_names() {
  std::vector<std::string> names;
  typename Env::template Params<double> params;
  params.each_group([&](const std::string& group, auto& part) {
    part.each([&](const char* name, int count, double*) {
      for (int i = 0; i < count; ++i)
        names.push_back(group + "." + name + (count == 1 ? "" : "." + std::to_string(i)));
    });
  });
  return names;
}

/// Reads parameters from numbers in the order of `param_names`.
template <class Env, class T>
typename Env::template Params<T> unpack_params(const double* numbers) {
  const auto fill = [numbers](auto& params) {
    const double* next = numbers;
    params.each_group([&](const char*, auto& part) {
      part.each([&](const char*, int count, auto* to) {
        using Number = std::remove_pointer_t<decltype(to)>;
        for (int i = 0; i < count; ++i) to[i] = static_cast<Number>(*next++);
      });
    });
  };
  typename Env::template Params<T> params;
  typename Env::template Params<double> exact;
  fill(params);
  fill(exact);
  params.derive(exact);
  return params;
}

}  // namespace marinenav
