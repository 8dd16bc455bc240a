// The tensors that an operator is given, checked against the environment's specification; and views.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <optional>
#include <string>
#include <vector>

#include "kernel/params.h"
#include "kernel/views.h"

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
  std::vector<int64_t> shape;
  if (turns) shape.push_back(arguments.tables().size("turns"));
  shape.push_back(arguments.tables().size("worlds"));
  shape.push_back(arguments.tables().size("robots"));
  if (!discrete) shape.push_back(Env::kContinuous);
  TORCH_CHECK(action.sizes() == c10::IntArrayRef(shape), "marinenav: `action` has shape ",
              action.sizes(), ", expected ", c10::IntArrayRef(shape));
  TORCH_CHECK(action.is_contiguous(), "marinenav: `action` must be contiguous");
  return {discrete ? nullptr : static_cast<T*>(action.data_ptr()),
          discrete ? action.const_data_ptr<int64_t>() : nullptr};
}

}  // namespace marinenav
