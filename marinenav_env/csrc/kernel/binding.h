// The operators' bodies, once for every device and environment: check the tensors, make views, run
// the phases.
#pragma once

#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "kernel/arguments.h"
#include "kernel/env_list.h"
#include "kernel/run.h"

namespace marinenav {

template <class Backend, class Envs>
void step(c10::string_view env, TensorList state, TensorList tables, const Tensor& action,
          TensorList previous, TensorList observation, TensorList results,
          const Tensor& params, int64_t seed, int64_t first_world) {
  with_env(Envs{}, env, [&](auto tag) {
    using Env = typename decltype(tag)::Type;
    Arguments arguments =
        state_arguments<Env>(state, tables, observation, seed, first_world);
    arguments.add("results", Specs<Env>::get().results, results);
    check_previous(arguments, Specs<Env>::get().observation, previous, observation);
    const c10::DeviceGuard guard(action.device());
    dispatch(arguments.real(), [&](auto real) {
      using T = decltype(real);
      run_step<Env, typename Backend::template Lanes<T>>(
          Backend::launcher(), typename Env::template State<T>(arguments.tables()),
          checked_params<Env, T>(params), checked_action<Env, T>(arguments, action),
          observation_view<Env, T>(previous), observation_view<Env, T>(observation),
          arguments.tables().size("frames"), StepView<T>(arguments.tables()));
    });
  });
}

/// Several decisions in one launch, of an environment that offers it: each is a kernel more to compile.
template <class Backend, class Envs>
void unroll(c10::string_view env, TensorList state, TensorList tables, const Tensor& actions,
            TensorList previous, TensorList observation, TensorList results,
            const Tensor& params, int64_t seed, int64_t first_world) {
  with_env(Envs{}, env, [&](auto tag) {
    using Env = typename decltype(tag)::Type;
    if constexpr (Env::kUnrolls) {
      Arguments arguments = state_arguments<Env>(state, tables, previous, seed, first_world);
      arguments.add("observation", of_turns(Specs<Env>::get().observation), observation);
      arguments.add("results", of_turns(Specs<Env>::get().results), results);
      check_previous(arguments, Specs<Env>::get().observation, previous, observation);
      const c10::DeviceGuard guard(actions.device());
      dispatch(arguments.real(), [&](auto real) {
        using T = decltype(real);
        using V = typename Backend::template Lanes<T>;
        const typename Env::template State<T> s(arguments.tables());
        const Unrolled<Env, V> body{
            s, checked_params<Env, T>(params), checked_action<Env, T>(arguments, actions, true),
            observation_view<Env, T>(previous), observation_view<Env, T>(observation),
            arguments.tables().size("frames"), StepView<T>(arguments.tables())};
        TORCH_CHECK(arguments.tables().size("turns") > 0, "marinenav: `actions` holds no turn");
        Backend::launcher().unroll(s.worlds, s.robots, arguments.tables().size("turns"), body);
      });
    } else {
      TORCH_CHECK(false, "marinenav: `", env, "` takes one decision a launch: call step and reset");
    }
  });
}

template <class Backend, class Envs>
void reset(c10::string_view env, TensorList state, TensorList tables, const OptionalTensor& only,
           TensorList observation, const Tensor& alive, const Tensor& params, int64_t seed,
           int64_t first_world, bool skip_if_empty) {
  with_env(Envs{}, env, [&](auto tag) {
    using Env = typename decltype(tag)::Type;
    Arguments arguments =
        state_arguments<Env>(state, tables, observation, seed, first_world);
    arguments.check(Specs<Env>::get().alive, alive);
    const bool* mask = checked_mask<Env>(arguments, only);
    if (skip_if_empty && only.has_value() && Backend::is_empty(*only)) return;
    const c10::DeviceGuard guard(alive.device());
    dispatch(arguments.real(), [&](auto real) {
      using T = decltype(real);
      run_reset<Env, typename Backend::template Lanes<T>>(
          Backend::launcher(), typename Env::template State<T>(arguments.tables()),
          checked_params<Env, T>(params), mask, observation_view<Env, T>(observation),
          arguments.tables().size("frames"), static_cast<bool*>(alive.data_ptr()));
    });
  });
}

template <class Backend, class Envs>
void observe(c10::string_view env, TensorList state, TensorList tables, const OptionalTensor& only,
             TensorList observation, const Tensor& params, int64_t seed,
             int64_t first_world) {
  with_env(Envs{}, env, [&](auto tag) {
    using Env = typename decltype(tag)::Type;
    Arguments arguments =
        state_arguments<Env>(state, tables, observation, seed, first_world);
    const bool* mask = checked_mask<Env>(arguments, only);
    const c10::DeviceGuard guard(state.front().device());
    dispatch(arguments.real(), [&](auto real) {
      using T = decltype(real);
      run_observe<Env, typename Backend::template Lanes<T>>(
          Backend::launcher(), typename Env::template State<T>(arguments.tables()),
          checked_params<Env, T>(params), mask, observation_view<Env, T>(observation),
          arguments.tables().size("frames"));
    });
  });
}

/// Philox4x32-10 of counters [N, 4] (int64 holding 32-bit words), for known-answer tests.
struct PhiloxPhase {
  using Value = float;
  static constexpr bool kPerRobot = false;
  const int64_t* counter;
  int64_t* words;
  uint32_t key0, key1;

  MN_HD void operator()(int, int i) const {
    const int64_t* c = counter + int64_t{i} * 4;
    const Philox4<uint32_t> w = philox(
        Philox4<uint32_t>{static_cast<uint32_t>(c[0]), static_cast<uint32_t>(c[1]),
                          static_cast<uint32_t>(c[2]), static_cast<uint32_t>(c[3])},
        key0, key1);
    int64_t* out = words + int64_t{i} * 4;
    out[0] = w.w0, out[1] = w.w1, out[2] = w.w2, out[3] = w.w3;
  }
};

template <class Backend>
Tensor philox_words(const Tensor& counter, int64_t key0, int64_t key1) {
  TORCH_CHECK(counter.scalar_type() == c10::kLong, "marinenav: `counter` has dtype ",
              counter.scalar_type(), ", expected Long");
  TORCH_CHECK(counter.dim() == 2 && counter.size(1) == 4, "marinenav: `counter` has shape ",
              counter.sizes(), ", expected [N, 4]");
  TORCH_CHECK(counter.is_contiguous(), "marinenav: `counter` must be contiguous");
  for (const int64_t word : {key0, key1})
    TORCH_CHECK(word >> 32 == 0, "marinenav: `key` holds ", word,
                ", which is no 32-bit word: give 0 to 4294967295");
  const c10::DeviceGuard guard(counter.device());
  Tensor words = at::empty_like(counter);
  Backend::launcher()(static_cast<int>(counter.size(0)), 1,
                      PhiloxPhase{counter.const_data_ptr<int64_t>(),
                                  static_cast<int64_t*>(words.data_ptr()),
                                  static_cast<uint32_t>(key0), static_cast<uint32_t>(key1)});
  return words;
}

template <class Backend, class Envs>
void register_kernels(torch::Library& m) {
  m.impl("step", &step<Backend, Envs>);
  m.impl("unroll", &unroll<Backend, Envs>);
  m.impl("reset", &reset<Backend, Envs>);
  m.impl("observe", &observe<Backend, Envs>);
  m.impl("philox", &philox_words<Backend>);
}

}  // namespace marinenav
