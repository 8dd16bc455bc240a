// Many rays pooled into sectors, as gym-auv has them (Meyer et al. 2020; EivMeyer/gym-auv 7956acd).
#pragma once

#include "marine/sensors/rays.h"

namespace marinenav {

constexpr int kMostRays = 180;
constexpr int kSectors = 9;

#define MN_SECTOR_PARAMS(X, XS) \
  X(range) X(rays) X(pooling) X(passage_margin) X(closeness) MN_RAY_FAULTS(X, XS)
MN_PARAMS(ListedSectorParams, MN_SECTOR_PARAMS)
#undef MN_SECTOR_PARAMS

template <class T>
struct SectorParams : RayParams<ListedSectorParams, T> {
  T angle;      // rad between two rays
  T per_log;    // 1 / ln(1 + range)
  T per_range;  // 1/m

  void derive(const SectorParams<double>& p) {
    angle = static_cast<T>(2.0 * kPi<double> / p.rays);
    per_log = static_cast<T>(1.0 / std::log(1.0 + p.range));
    per_range = static_cast<T>(1.0 / p.range);
  }
  MN_HD bool feasible_pooling() const { return this->pooling > T(0.5); }
  MN_HD bool linear() const { return this->closeness > T(0.5); }
};

struct Sectors : RowSensor<kSectors, 3> {
  static TensorSpecs observation() { return rows("closeness v_x v_y"); }
  /// Direction of every ray in the body frame, and its sector.
  static TensorSpecs tables() {
    return {{"ray", Number::kReal, {3, kMostRays}, "cos sin sector"}};
  }

  template <class T>
  struct Groups {
    SectorParams<T> perception;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("perception", perception);
    }
    void derive(const Groups<double>& exact) { perception.derive(exact.perception); }
  };

  template <class T>
  struct View : FaultySensor::View<T> {
    const T* ray;
    explicit View(const Tables& t) : FaultySensor::View<T>(t), ray(t.at<T>("ray")) {}
    MN_HD T ray_cos(int i) const { return ray[i]; }
    MN_HD T ray_sin(int i) const { return ray[kMostRays + i]; }
    MN_HD int ray_sector(int i) const { return static_cast<int>(ray[2 * kMostRays + i]); }
  };

  /// Whether a vessel of width `wide` fits between the rays [first, last) at distance `at`: over
  /// rays that reach farther widths add up, and one that does not ends the opening.
  template <class V, class T = Scalar<V>>
  MN_HD static Mask<V> fits(const V (&distance)[kMostRays], int first, int last, V at, T angle,
                            T wide) {
    const V zero = splat<V>(T(0)), arc = at * angle, half = arc * T(0.5);
    auto feasible = zero > zero;
    V width = half;
    for (int i = first; i < last; ++i) {
      const auto farther = distance[i] > at;
      width = width + select(farther, arc, half);
      feasible = either(feasible, width > wide);
      width = select(farther, width, zero);
    }
    return feasible;
  }

  /// Distance (m) up to which a vessel of width `wide` can go through the rays [first, last).
  template <class V, class T = Scalar<V>>
  MN_HD static V feasible_distance(const V (&distance)[kMostRays], int first, int last, T angle,
                                   T wide) {
    V least = splat<V>(kUnseen<T>), most = splat<V>(T(0));
    for (int i = first; i < last; ++i) {
      const auto open = fits(distance, first, last, distance[i], angle, wide);
      least = select(open, least, smaller(least, distance[i]));
      most = larger(most, distance[i]);
    }
    return smaller(least, most);
  }

  template <class V, class P, class T = Scalar<V>>
  MN_HD static V closeness_of(const P& p, V distance) {
    const V one = splat<V>(T(1));
    const V share = p.perception.linear() ? distance * p.perception.per_range
                                          : log_of(one + distance) * p.perception.per_log;
    return one - smaller(larger(share, splat<V>(T(0))), one);
  }

  /// What sectors' shortest rays say: a distance (m), and the velocity (m/s) of what each meets.
  template <class V>
  struct Shortest {
    V distance[kSectors], vx[kSectors], vy[kSectors];
    MN_HD void clear(V nothing) {
      for (int k = 0; k < kSectors; ++k) distance[k] = nothing, vx[k] = V{}, vy[k] = V{};
    }
    MN_HD void note(int k, Mask<V> closer, V d, const Circle<V>& circle) {
      distance[k] = select(closer, d, distance[k]);
      vx[k] = select(closer, circle.vx, vx[k]), vy[k] = select(closer, circle.vy, vy[k]);
    }
  };

  /// Makes of the distances to what rays meet those that they measure, and the sectors' shortest.
  template <class V, class S, class P, class T = Scalar<V>>
  MN_HD static void measure_sectors(const S& s, const P& p, const RandomStream<V>& random,
                                    const SensorFaults<V>& faults, const Observer<V>& self, int r,
                                    int w, V (&distance)[kMostRays], Shortest<V>& shortest) {
    const int rays = static_cast<int>(p.perception.rays);
    V measured[kSectors], cos[kSectors], sin[kSectors];
    for (int k = 0; k < kSectors; ++k)
      measured[k] = splat<V>(kUnseen<T>), cos[k] = sin[k] = splat<V>(T(0));
    measure(p, random, faults, r, rays, distance, [&](int i, V found) {
      const int k = s.ray_sector(i);
      const auto closer = found < measured[k];
      measured[k] = select(closer, found, measured[k]);
      cos[k] = select(closer, splat<V>(s.ray_cos(i)), cos[k]);
      sin[k] = select(closer, splat<V>(s.ray_sin(i)), sin[k]);
      distance[i] = smaller(found, splat<V>(p.perception.range));
    });
    // The shortest rays once more, for the velocities: a sector without one has no direction.
    shortest.clear(splat<V>(kUnseen<T>));
    each_circle<V>(s, p, random, faults, self, r, w, [&](const Circle<V>& circle) {
      for (int k = 0; k < kSectors; ++k) {
        const V d = along_ray(circle, cos[k], sin[k]);
        shortest.note(k, d < shortest.distance[k], d, circle);
      }
    });
    for (int k = 0; k < kSectors; ++k) shortest.distance[k] = measured[k];
  }

  /// `put(i, value)` writes the observation.
  template <bool kWithFaults, class V, class S, class P, class Put, class T = Scalar<V>>
  MN_HD static RaySighting<V> observe(const S& s, const P& p, const RandomStream<V>& random,
                                      const Observer<V>& self, V, V, int r, int w,
                                      const Put& put) {
    const int rays = static_cast<int>(p.perception.rays);
    const V zero = splat<V>(T(0)), one = splat<V>(T(1)), range = splat<V>(p.perception.range);
    const V nothing = kWithFaults ? splat<V>(kUnseen<T>) : range;
    V distance[kMostRays];
    Shortest<V> shortest;
    for (int i = 0; i < rays; ++i) distance[i] = nothing;
    shortest.clear(nothing);
    const FaultsIf<kWithFaults, V> faults(s, p, random, r, w);
    const auto meet = [&](const Circle<V>& circle) {
      const V far = circle.radius + range;
      if (!any(circle.x * circle.x + circle.y * circle.y <= far * far)) return;
      for (int i = 0; i < rays; ++i) {
        const V d = along_ray(circle, s.ray_cos(i), s.ray_sin(i));
        const int k = s.ray_sector(i);
        shortest.note(k, d < shortest.distance[k], d, circle);
        distance[i] = smaller(distance[i], d);
      }
    };
    const auto contact = each_circle<V>(s, p, random, faults, self, r, w, meet);
    if constexpr (kWithFaults) measure_sectors(s, p, random, faults, self, r, w, distance, shortest);
    const T wide = T(2) * p.vessel.radius + p.perception.passage_margin;
    int first = 0;
    for (int k = 0; k < kSectors; ++k) {
      int last = first;
      while (last < rays && s.ray_sector(last) == k) ++last;
      const V pooled = p.perception.feasible_pooling()
                           ? feasible_distance(distance, first, last, p.perception.angle, wide)
                           : smaller(shortest.distance[k], range);
      put(3 * k, closeness_of(p, pooled));
      put(3 * k + 1, shortest.vx[k]), put(3 * k + 2, shortest.vy[k]);
      put(3 * kSectors + k, select(shortest.distance[k] < nothing, one, zero));
      first = last;
    }
    return {contact};
  }
};

}  // namespace marinenav
