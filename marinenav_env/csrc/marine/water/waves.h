// Waves: the horizontal force of long-crested irregular waves on a hull. docs/physics.md has the
// equations.
#pragma once

#include "kernel/params.h"
#include "kernel/philox.h"
#include "marine/purposes.h"
#include "marine/water/component.h"

namespace marinenav {

constexpr int kWaves = 5;  // regular waves that make an irregular one

#define MN_WAVE_PARAMS(X, XS) X(height) X(period) XS(direction, 2) X(draught)
MN_PARAMS(ListedWaveParams, MN_WAVE_PARAMS)
#undef MN_WAVE_PARAMS

template <class T>
struct WaveParams : ListedWaveParams<T> {
  T number[kWaves], frequency[kWaves];  // 1/m, rad/s
  T turn[kWaves];                       // rad in [0, 2 pi) in a decision
  T force[kWaves];                      // greatest force on a hull much shorter than the wave, N
  T half_length, square_length;         // of the hull: L / 2, L^2 / 12

  /// Waves of equal energy: each has the median frequency of its fifth of the spectrum.
  template <class Params>
  void derive(const Params& exact) {
    constexpr double kGravity = 9.81;
    const auto& e = exact.waves;
    const double amplitude = 0.25 * e.height * std::sqrt(2.0 / kWaves);
    for (int i = 0; i < kWaves; ++i) {
      const double below = (i + 0.5) / kWaves;  // share of the energy at lower frequencies
      const double omega =
          2.0 * kPi<double> / e.period * std::pow(-1.25 / std::log(below), 0.25);
      const double k = omega * omega / kGravity;
      number[i] = static_cast<T>(k);
      frequency[i] = static_cast<T>(omega);
      turn[i] = static_cast<T>(
          std::fmod(omega * exact.vessel.dt * exact.vessel.substeps, 2.0 * kPi<double>));
      force[i] = static_cast<T>(exact.vessel.mass * kGravity * amplitude * k *
                                std::exp(-0.5 * k * e.draught));
    }
    half_length = static_cast<T>(0.5 * exact.vessel.length);
    square_length = static_cast<T>(exact.vessel.length * exact.vessel.length / 12.0);
  }
};

struct Waves : Component {
  template <class T>
  struct Groups {
    WaveParams<T> waves;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("waves", waves);
    }
    template <class Params>
    void derive(const Params& exact) {
      waves.derive(exact);
    }
  };

  struct Field {
    enum : int { kCos, kSin, kPhase };
  };
  static TensorSpecs specs() {
    // direction in which they run; phases at the map's origin when the decision begins, rad
    return {{"wave", Number::kReal, {2 + kWaves, "stride"}, "cos sin p0 p1 p2 p3 p4"}};
  }

  template <class T>
  struct View {
    T* wave;
    explicit View(const Tables& t) : wave(t.at<T>("wave")) {}
  };
  template <class S>
  MN_HD static auto at(const S& s, int field, int w) {
    return s.wave + int64_t{field} * s.stride + w;
  }

  template <class Params>
  MN_HD static bool disturbs(const Params& p) {
    return p.waves.height > 0;
  }

  /// sin(a) / a.
  template <class V, class T = Scalar<V>>
  MN_HD static V sinc(V a) {
    const V one = splat<V>(T(1));
    const auto small = absolute(a) < splat<V>(T(1e-3));
    return select(small, one - a * a * T(1.0 / 6.0), sincos_of(a).sin / select(small, one, a));
  }

  template <class S, class Params, class V, class T = Scalar<V>>
  MN_HD static void push(const S& s, const Params& p, int w, T elapsed, const Hull<V>& hull,
                         Force<V>& force) {
    const V cos = load<V>(at(s, Field::kCos, w)), sin = load<V>(at(s, Field::kSin, w));
    const V along = hull.x * cos + hull.y * sin;
    const V ahead = cos * hull.heading.cos + sin * hull.heading.sin;
    const V abeam = sin * hull.heading.cos - cos * hull.heading.sin;
    for (int i = 0; i < kWaves; ++i) {
      const T k = p.waves.number[i];
      const SinCos<V> phase = sincos_of(load<V>(at(s, Field::kPhase + i, w)) + along * k -
                                        p.waves.frequency[i] * elapsed);
      const V slope = phase.sin * sinc(ahead * (k * p.waves.half_length)) * p.waves.force[i];
      force.surge = force.surge + ahead * slope;
      force.sway = force.sway + abeam * slope;
      force.yaw = force.yaw +
                  abeam * ahead * phase.cos * (p.waves.force[i] * k * p.waves.square_length);
    }
  }

  /// Direction and phases of an episode.
  template <class Placement, class T>
  MN_HD static void place(const Placement& place, const T*) {
    const auto& waves = place.p.waves;
    const Philox4<uint32_t> first = place.random.draw(Purpose::kWave, 0, 0);
    const Philox4<uint32_t> second = place.random.draw(Purpose::kWave, 0, 1);
    const SinCos<T> toward = sincos_of(between(waves.direction[0], waves.direction[1], first.w0));
    *at(place.s, Field::kCos, place.w) = toward.cos;
    *at(place.s, Field::kSin, place.w) = toward.sin;
    const uint32_t bits[kWaves] = {first.w1, first.w2, first.w3, second.w0, second.w1};
    for (int i = 0; i < kWaves; ++i)
      *at(place.s, Field::kPhase + i, place.w) = uniform<T>(bits[i]) * (T(2) * kPi<T>);
  }

  /// Turns the phases on by a decision.
  template <class V, class S, class Params, class T = Scalar<V>>
  MN_HD static void advance(const S& s, const Params& p, int w, Mask<V> running) {
    if (!disturbs(p)) return;
    const V circle = splat<V>(T(2) * kPi<T>);
    for (int i = 0; i < kWaves; ++i) {
      const V before = load<V>(at(s, Field::kPhase + i, w));
      const V after = before - p.waves.turn[i];
      const V wrapped = select(after < splat<V>(T(0)), after + circle, after);
      store(at(s, Field::kPhase + i, w), select(running, wrapped, before));
    }
  }
};

}  // namespace marinenav
