// The operators' bodies, once for every device and environment: check the tensors against the
// environment's specification, make views, run the phases.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/ArrayRef.h>
#include <torch/library.h>

#include "kernel/env_list.h"
#include "kernel/params.h"
#include "kernel/run.h"

namespace marinenav {

using at::Tensor;
using at::TensorList;
using OptionalTensor = std::optional<Tensor>;

inline int64_t padded(int64_t worlds) {
  return (worlds + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

/// The tensors of a call, checked one by one: device, number, contiguity, and extents, which have to
/// agree between tensors where they have the same name.
class Arguments {
 public:
  Arguments(const Tensor& real, int64_t worlds, const char* name = "robot")
      : device_(real.device()), real_(real.scalar_type()) {
    TORCH_CHECK(real_ == c10::kFloat || real_ == c10::kDouble, "marinenav: `", name, "` has dtype ",
                real_, ", expected float32 or float64");
    tables_.set_size("worlds", worlds);
    tables_.set_size("stride", padded(worlds));
  }

  void add(const char* list, const TensorSpecs& specs, TensorList tensors) {
    TORCH_CHECK(tensors.size() == specs.size(), "marinenav: `", list, "` holds ", tensors.size(),
                " tensors, expected ", specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      check(specs[i], tensors[i]);
      tables_.add(specs[i].name, tensors[i].numel() > 0 ? tensors[i].data_ptr() : nullptr);
    }
  }

  void check(const TensorSpec& spec, const Tensor& t) {
    check_kind(t, spec.name, dtype_of(spec.number));
    if (spec.optional && t.numel() == 0) return;
    bool fits = t.dim() == static_cast<int64_t>(spec.shape.size());
    for (size_t i = 0; fits && i < spec.shape.size(); ++i) fits = extent_fits(spec.shape[i], t.size(i));
    TORCH_CHECK(fits, "marinenav: `", spec.name, "` has shape ", t.sizes(), ", expected ",
                expected(spec));
    TORCH_CHECK(t.is_contiguous(), "marinenav: `", spec.name, "` must be contiguous");
  }

  void check_kind(const Tensor& t, const char* name, c10::ScalarType dtype) const {
    TORCH_CHECK(t.device() == device_, "marinenav: `", name, "` is on ", t.device(),
                ", expected ", device_, ", where the simulator's state is");
    TORCH_CHECK(t.scalar_type() == dtype, "marinenav: `", name, "` has dtype ", t.scalar_type(),
                ", expected ", dtype);
  }

  c10::ScalarType real() const { return real_; }
  Tables& tables() { return tables_; }
  int size(const char* extent) const { return tables_.size(extent); }

 private:
  c10::ScalarType dtype_of(Number number) const {
    if (number == Number::kReal) return real_;
    return number == Number::kInt ? c10::kInt : c10::kBool;
  }
  bool extent_fits(const Extent& extent, int64_t size) {
    if (extent.name == nullptr) return size == extent.size;
    const int64_t known = tables_.known_size(extent.name);
    if (known < 0) tables_.set_size(extent.name, size);
    return known < 0 || known == size;
  }
  std::string expected(const TensorSpec& spec) const {
    std::string text;
    for (const Extent& extent : spec.shape) {
      const int64_t known = extent.name == nullptr ? extent.size : tables_.known_size(extent.name);
      text += (text.empty() ? "[" : ", ") +
              (known < 0 ? std::string(extent.name) : std::to_string(known));
    }
    return text + "]";
  }

  c10::Device device_;
  c10::ScalarType real_;
  Tables tables_;
};

/// The first tensor of a list, from which device and numbers of the others follow.
inline const Tensor& first_of(TensorList list, const char* name) {
  TORCH_CHECK(!list.empty(), "marinenav: `", name, "` holds no tensor");
  return list.front();
}

inline int64_t worlds_of(TensorList observation) {
  const Tensor& entry = first_of(observation, "observation");
  TORCH_CHECK(entry.dim() > 0, "marinenav: `observation` needs shape [W, R, frames, ...]");
  return entry.size(0);
}

/// An environment's specification, made once.
template <class Env>
struct Specs {
  const TensorSpecs state = Env::state(), tables = Env::tables(), observation = Env::observation();
  const TensorSpecs results = StepView<float>::specs();
  const TensorSpec alive = {"alive", Number::kBool, {"worlds", "robots"}};
  const TensorSpec only = {"only", Number::kBool, {"worlds"}};
  const size_t params = param_names<Env>().size();

  static const Specs& get() {
    static const Specs specs;
    return specs;
  }
};

template <class Env>
Arguments state_arguments(TensorList state, TensorList tables, TensorList observation, int64_t seed,
                          int64_t first_world) {
  Arguments arguments(first_of(state, "state"), worlds_of(observation));
  arguments.add("state", Specs<Env>::get().state, state);
  arguments.add("tables", Specs<Env>::get().tables, tables);
  arguments.add("observation", Specs<Env>::get().observation, observation);
  TORCH_CHECK(arguments.tables().size("stages") > 0, "marinenav: `stage` holds no stage");
  arguments.tables().seed = static_cast<uint64_t>(seed);
  arguments.tables().first_world = static_cast<uint32_t>(first_world);
  return arguments;
}

template <class Env, class T>
ObservationView<Env, T> observation_view(TensorList tensors) {
  ObservationView<Env, T> view;
  for (int k = 0; k < Env::kEntries; ++k) view.entry[k] = static_cast<T*>(tensors[k].data_ptr());
  return view;
}

/// Parameters come as a tensor of the host: a list of Python's numbers would be converted one by one
/// in every call, which takes a good part of a step of one world.
template <class Env, class T>
typename Env::template Params<T> checked_params(const Tensor& numbers) {
  const int64_t count = static_cast<int64_t>(Specs<Env>::get().params);
  TORCH_CHECK(numbers.is_cpu() && numbers.scalar_type() == c10::kDouble && numbers.is_contiguous(),
              "marinenav: `params` has dtype ", numbers.scalar_type(), " on ", numbers.device(),
              ", expected contiguous float64 on cpu");
  TORCH_CHECK(numbers.dim() == 1 && numbers.numel() == count, "marinenav: `params` has shape ",
              numbers.sizes(), ", expected [", count, "] (see the specification)");
  return unpack_params<Env, T>(numbers.const_data_ptr<double>());
}

/// Calls body(T{}) with the state's number type.
template <class Body>
void dispatch(c10::ScalarType real, const Body& body) {
  if (real == c10::kFloat) {
    body(float{});
  } else {
    body(double{});
  }
}

template <class Env>
const bool* checked_mask(Arguments& arguments, const OptionalTensor& only) {
  if (!only.has_value()) return nullptr;
  arguments.check(Specs<Env>::get().only, *only);
  return only->const_data_ptr<bool>();
}

/// Checks the observation before a step, from which older frames are copied: a step that writes in
/// place would read what it writes.
inline void check_previous(Arguments& arguments, const TensorSpecs& entries, TensorList previous,
                           TensorList observation) {
  TORCH_CHECK(previous.size() == entries.size(), "marinenav: `previous` holds ", previous.size(),
              " tensors, expected ", entries.size());
  const bool apart = arguments.tables().size("frames") > 1;
  for (size_t k = 0; k < entries.size(); ++k) {
    arguments.check(entries[k], previous[k]);
    TORCH_CHECK(!apart || observation[k].data_ptr() != previous[k].data_ptr(),
                "marinenav: with stacked frames `", entries[k].name,
                "` and its previous one must not share memory: give two sets of buffers");
  }
}

/// Specifications of tensors that have a row for each of several turns.
inline TensorSpecs of_turns(TensorSpecs specs) {
  for (TensorSpec& spec : specs) spec.shape.insert(spec.shape.begin(), Extent("turns"));
  return specs;
}

/// The action of a step, or of each of several turns.
template <class Env, class T>
ActionView<T> checked_action(Arguments& arguments, const Tensor& action, bool turns = false) {
  const bool discrete =
      Env::kContinuous == 0 || (Env::kDiscrete > 0 && action.scalar_type() == c10::kLong);
  arguments.check_kind(action, "action", discrete ? c10::kLong : arguments.real());
  const std::vector<int64_t> shape = [&] {
    std::vector<int64_t> rows;
    if (turns) rows.push_back(arguments.tables().size("turns"));
    rows.push_back(arguments.tables().size("worlds"));
    rows.push_back(arguments.tables().size("robots"));
    if (!discrete) rows.push_back(Env::kContinuous);
    return rows;
  }();
  TORCH_CHECK(action.sizes() == c10::IntArrayRef(shape), "marinenav: `action` has shape ",
              action.sizes(), ", expected ", c10::IntArrayRef(shape));
  TORCH_CHECK(action.is_contiguous(), "marinenav: `action` must be contiguous");
  return {discrete ? nullptr : static_cast<T*>(action.data_ptr()),
          discrete ? action.const_data_ptr<int64_t>() : nullptr};
}

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
