// Variation: factors on masses, damping and thrust, drawn anew for every world and episode.
#pragma once

#include "kernel/params.h"
#include "kernel/philox.h"
#include "marine/purposes.h"
#include "marine/water/component.h"

namespace marinenav {

#define MN_VARIATION_PARAMS(X, XS)                                                              \
  XS(mass, 2) XS(added_inertia, 2) XS(surge_damping, 2) XS(sway_damping, 2) XS(yaw_damping, 2)  \
  XS(left_thrust, 2) XS(right_thrust, 2) XS(thrust_rate, 2)
MN_PARAMS(ListedVariationParams, MN_VARIATION_PARAMS)

template <class T>
struct VariationParams : ListedVariationParams<T> {
  T on;  // 1 if a factor may differ from 1

  template <class Params>
  void derive(const Params& exact) {
    on = T(0);
    auto range = exact.variation;  // `each` visits what may be written
    range.each([&](const char*, int, const double* ends) {
      if (ends[0] != 1.0 || ends[1] != 1.0) on = T(1);
    });
  }
};

struct Variation : Component {
  template <class T>
  struct Groups {
    VariationParams<T> variation;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("variation", variation);
    }
    template <class Params>
    void derive(const Params& exact) {
      variation.derive(exact);
    }
  };

  struct Field {
    enum : int {
      kMass, kAddedInertia, kSurge, kSway, kYaw, kLeftThrust, kRightThrust, kThrustRate, kCount
    };
  };
  static TensorSpecs specs() {
    return {{"factor", Number::kReal, {Field::kCount, "stride"},
             "mass added_inertia surge_damping sway_damping yaw_damping left_thrust right_thrust "
             "thrust_rate"}};
  }

  template <class T>
  struct View {
    T* factor;
    explicit View(const Tables& t) : factor(t.at<T>("factor")) {}
  };
  template <class S>
  MN_HD static auto at(const S& s, int field, int w) {
    return s.factor + int64_t{field} * s.stride + w;
  }

  template <class Params>
  MN_HD static bool disturbs(const Params& p) {
    return p.variation.on > 0;
  }
  template <class Params>
  MN_HD static bool drives(const Params& p) {
    return disturbs(p);
  }

  template <class S, class Params, class V, class T = Scalar<V>>
  MN_HD static void drive(const S& s, const Params&, int, int w, T, V (&thrust)[2]) {
    thrust[0] = thrust[0] * load<V>(at(s, Field::kLeftThrust, w));
    thrust[1] = thrust[1] * load<V>(at(s, Field::kRightThrust, w));
  }

  template <class S, class Params, class V>
  MN_HD static void vary(const S& s, const Params&, int w, HullFactors<V>& by, V& rate) {
    by = {load<V>(at(s, Field::kMass, w)), load<V>(at(s, Field::kAddedInertia, w)),
          load<V>(at(s, Field::kSurge, w)), load<V>(at(s, Field::kSway, w)),
          load<V>(at(s, Field::kYaw, w))};
    rate = load<V>(at(s, Field::kThrustRate, w));
  }

  template <class Placement, class T>
  MN_HD static void place(const Placement& place, const T*) {
    const auto& range = place.p.variation;
    int field = 0;
    Philox4<uint32_t> bits;
    const auto draw = [&](const T (&ends)[2]) {
      if (field % 4 == 0) bits = place.random.draw(Purpose::kVariation, 0, field / 4);
      const uint32_t words[] = {bits.w0, bits.w1, bits.w2, bits.w3};
      *at(place.s, field, place.w) = between(ends[0], ends[1], words[field % 4]);
      ++field;
    };
#define MN_DRAW(name, count) draw(range.name);
    MN_VARIATION_PARAMS(, MN_DRAW)
#undef MN_DRAW
  }
};
#undef MN_VARIATION_PARAMS

}  // namespace marinenav
