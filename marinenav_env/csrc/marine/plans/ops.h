// The operators that look ahead: plans that hold an action, and plans that follow a course.
#pragma once

#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "kernel/arguments.h"
#include "kernel/env_list.h"
#include "marine/plans/actions.h"
#include "marine/plans/courses.h"

namespace marinenav {

/// Whether vessels of an environment can be moved ahead from what they observe.
template <class Env, class = void>
constexpr bool kLooksAhead = false;
template <class Env>
constexpr bool kLooksAhead<Env, std::void_t<typename Env::Vessel>> =
    std::is_base_of_v<Wamv16, typename Env::Vessel> && Env::kEgo == 7 &&
    Env::kObservationSize == 7 + kObjects * (kObjectFeatures + 1);

/// Calls body(Tag<Env>) for an environment that looks ahead.
template <class Envs, class Body>
void with_plans(c10::string_view env, const Body& body) {
  with_env(Envs{}, env, [&](auto tag) {
    if constexpr (kLooksAhead<typename decltype(tag)::Type>) {
      body(tag);
    } else {
      TORCH_CHECK(false, "marinenav: `", env, "` has no vessels that look ahead");
    }
  });
}

/// The observation of a call, checked.
class Sight {
 public:
  explicit Sight(TensorList observation)
      : arguments(first_of(observation, "observation"), worlds_of(observation), "ego"),
        tensors_(observation) {
    arguments.add("observation",
                  {{"ego", Number::kReal, {"vessels", 7}},
                   {"objects", Number::kReal, {"vessels", kObjects, kObjectFeatures}},
                   {"mask", Number::kReal, {"vessels", kObjects}}},
                  observation);
  }
  template <class T>
  SightView<T> view() const {
    return {arguments.size("vessels"), pointer<T>(tensors_[0]), pointer<T>(tensors_[1]),
            pointer<T>(tensors_[2])};
  }
  template <class T>
  static T* pointer(const Tensor& t) {
    return static_cast<T*>(t.data_ptr());
  }

  Arguments arguments;

 private:
  TensorList tensors_;
};

/// Courses' parameters in the order of their list.
inline std::string course_params() {
  std::string names;
  CourseParams<double>().each([&](const char* name, int, double*) { names += name + std::string(" "); });
  return names;
}

template <class T>
CourseParams<T> unpack_courses(c10::ArrayRef<double> numbers) {
  const auto fill = [&](auto& params) {
    size_t next = 0;
    params.each([&](const char*, int, auto* to) {
      TORCH_CHECK(next < numbers.size(), "marinenav: `costs` has ", numbers.size(),
                  " entries, too few (see `course_params`)");
      *to = static_cast<std::remove_pointer_t<decltype(to)>>(numbers[next++]);
    });
    TORCH_CHECK(next == numbers.size(), "marinenav: `costs` has ", numbers.size(),
                " entries, expected ", next, " (see `course_params`)");
  };
  CourseParams<T> params;
  CourseParams<double> exact;
  fill(params);
  fill(exact);
  params.derive(exact);
  return params;
}

template <class Backend, class Envs>
void plan_actions(c10::string_view env, TensorList observation, const Tensor& action,
                  TensorList plans, TensorList seen, const OptionalTensor& shown,
                  const Tensor& params, double closer, int64_t first, int64_t decisions) {
  with_plans<Envs>(env, [&](auto tag) {
    using Env = typename decltype(tag)::Type;
    Sight sight(observation);
    Arguments& arguments = sight.arguments;
    arguments.add("plans",
                  {{"motion", Number::kReal, {Ahead<float>::kRows, "plans", "vessels"}},
                   {"clearance", Number::kReal, {"plans", "vessels", kObjects}},
                   {"remaining", Number::kReal, {"plans", "vessels"}}},
                  plans);
    const bool shows = shown.has_value();
    if (shows) {
      arguments.check({"shown", Number::kBool, {"vessels", kObjects}}, *shown);
      arguments.add("seen",
                    {{"seen ego", Number::kReal, {"plans", "vessels", 7}},
                     {"seen objects", Number::kReal,
                      {"plans", "vessels", kObjects, kObjectFeatures}},
                     {"seen mask", Number::kReal, {"plans", "vessels", kObjects}}},
                    seen);
    }
    const int count = arguments.size("plans");
    const bool discrete = action.scalar_type() == c10::kLong;
    const TensorSpec held = {"action", Number::kReal, {"plans", "vessels", 2}};
    if (discrete) {
      arguments.check_kind(action, "action", c10::kLong);
      const std::vector<int64_t> shape = {count, arguments.size("vessels")};
      TORCH_CHECK(action.sizes() == c10::IntArrayRef(shape) && action.is_contiguous(),
                  "marinenav: `action` has shape ", action.sizes(), ", expected contiguous ",
                  c10::IntArrayRef(shape));
    } else {
      arguments.check(held, action);
    }
    TORCH_CHECK(first >= 0 && decisions >= 0, "marinenav: `first` is ", first, " and `decisions` ",
                decisions, ": give 0 or more");
    const c10::DeviceGuard guard(action.device());
    dispatch(arguments.real(), [&](auto real) {
      using T = decltype(real);
      SeenView<T> view = {};
      if (shows)
        view = {Sight::pointer<T>(seen[0]), Sight::pointer<T>(seen[1]), Sight::pointer<T>(seen[2]),
                shown->template const_data_ptr<bool>(), static_cast<T>(closer)};
      Backend::launcher()(
          arguments.size("vessels"), count,
          PlanActionsPhase<Env, typename Backend::template Lanes<T>>{
              checked_params<Env, T>(params), sight.view<T>(),
              {discrete ? nullptr : Sight::pointer<T>(action),
               discrete ? action.const_data_ptr<int64_t>() : nullptr},
              {Sight::pointer<T>(plans[0]), Sight::pointer<T>(plans[1]),
               Sight::pointer<T>(plans[2])},
              view, count, static_cast<int>(first), static_cast<int>(decisions)});
    });
  });
}

template <class Backend, class Envs>
void plan_courses(c10::string_view env, TensorList observation, const Tensor& courses,
                  const Tensor& danger, const Tensor& remaining, const Tensor& params,
                  c10::ArrayRef<double> costs) {
  with_plans<Envs>(env, [&](auto tag) {
    using Env = typename decltype(tag)::Type;
    Sight sight(observation);
    Arguments& arguments = sight.arguments;
    arguments.check({"courses", Number::kReal, {"courses", 2}}, courses);
    arguments.check({"danger", Number::kReal, {"courses", "vessels"}}, danger);
    arguments.check({"remaining", Number::kReal, {"courses", "vessels"}}, remaining);
    const c10::DeviceGuard guard(courses.device());
    dispatch(arguments.real(), [&](auto real) {
      using T = decltype(real);
      const auto p = checked_params<Env, T>(params);
      const auto q = unpack_courses<T>(costs);
      const int decisions =
          static_cast<int>(std::lround(q.horizon_s / p.vessel.decision_time));
      using Phase = PlanCoursesPhase<Env, typename Backend::template Lanes<T>>;
      const int count = arguments.size("courses");
      Backend::launcher()(arguments.size("vessels"), Phase::groups(count),
                          Phase{p, q, sight.view<T>(), Sight::pointer<T>(courses),
                                Sight::pointer<T>(danger), Sight::pointer<T>(remaining), count,
                                decisions});
    });
  });
}

/// Registers the operators that look ahead.
template <class Backend, class Envs>
void register_plans(torch::Library& m) {
  m.impl("plan_actions", &plan_actions<Backend, Envs>);
  m.impl("plan_courses", &plan_courses<Backend, Envs>);
}

}  // namespace marinenav
