// Faults of range finders beside what a hand works out. Every lane is a world of its own, with robot
// 0 at the origin heading north; expectations are doubles, from the words of the random numbers.
#include <cmath>
#include <map>
#include <vector>

#include "marine/marine.h"
#include "marine/reach_goal.h"
#include "marine/sensors/beams.h"
#include "marine/sensors/sectors.h"
#include "report.h"

namespace marinenav::test {
namespace {

constexpr int kWorlds = kRowAlignment;
using MarineBeams = DisturbedEnv<Wamv16, Beams, ReachGoalTask>;
using MarineSectors = DisturbedEnv<Wamv16, Sectors, ReachGoalTask>;

/// Worlds of two robots and two buoys, with tensors by their specification.
template <class Env, class T>
struct Lanes {
  using F = typename Env::Robot;
  std::map<std::string, std::vector<T>> real;
  std::map<std::string, std::vector<int32_t>> whole;
  Tables tables;
  typename Env::template Params<T> params;

  explicit Lanes(std::map<std::string, double> given) {
    given.insert({{"vessel.radius", 2.0}, {"perception.range", 20.0}, {"perception.rays", 20.0}});
    given.insert({{"perception.closeness", 1.0}});  // linear
    for (const char* factor : {"noise_factor", "range_factor"})
      for (const char* end : {".0", ".1"})
        given.insert({std::string("perception.") + factor + end, 1.0});
    std::vector<double> numbers;
    for (const std::string& name : param_names<Env>())
      numbers.push_back(given.count(name) != 0 ? given.at(name) : 0.0);
    params = unpack_params<Env, T>(numbers.data());
    for (const char* name : {"robots", "buoys"}) tables.set_size(name, 2);
    for (const char* name : {"frames", "stages"}) tables.set_size(name, 1);
    for (const char* name : {"vortices", "scenes"}) tables.set_size(name, 0);
    for (const char* name : {"worlds", "stride"}) tables.set_size(name, kWorlds);
    tables.seed = 0x700000005;
    for (const TensorSpecs& specs : {Env::state(), Env::tables()})
      for (const TensorSpec& spec : specs) add(spec);
    for (const char* factor : {"sensor", "reach"}) real[factor].assign(kWorlds, T(1));
  }

  void add(const TensorSpec& spec) {
    size_t count = 1;
    for (const Extent& e : spec.shape) count *= e.name == nullptr ? e.size : tables.size(e.name);
    if (spec.number == Number::kReal) {
      real[spec.name].resize(count + 1);
      tables.add(spec.name, real[spec.name].data());
    } else {
      whole[spec.name].resize(count + 1);
      tables.add(spec.name, whole[spec.name].data());
    }
  }

  typename Env::template State<T> state() { return typename Env::template State<T>(tables); }

  /// Puts a buoy of radius 1 m somewhere.
  void buoy(int index, double x, double y) {
    for (int w = 0; w < kWorlds; ++w)
      *state().buoy_at(0, index, w) = static_cast<T>(x),
      *state().buoy_at(1, index, w) = static_cast<T>(y), *state().buoy_at(2, index, w) = T(1);
  }

  /// Puts robot 1 on the x axis, and where it was when the decision began.
  void vessel(double x, double vx, double x_before, double vx_before) {
    const auto s = state();
    for (int w = 0; w < kWorlds; ++w) {
      *s.status_at(1, w) = kAlive;
      *s.robot_at(F::kX, 1, w) = static_cast<T>(x), *s.robot_at(F::kVx, 1, w) = static_cast<T>(vx);
      *s.past_at(0, 1, w) = static_cast<T>(x_before);
      *s.past_at(2, 1, w) = static_cast<T>(vx_before);
    }
  }

  /// The words of a draw of robot 0 in world w.
  std::vector<double> words(uint32_t purpose, int w, uint32_t index = 0) {
    const auto bits = state().template random<T>(w, 0).draw(purpose, 0, index);
    return {uniform<double>(bits.w0), uniform<double>(bits.w1), uniform<double>(bits.w2),
            uniform<double>(bits.w3)};
  }
};

/// What robot 0 of every world sees: numbers of the observation, and contact.
struct Seen {
  std::vector<double> number[kWorlds];
  bool contact[kWorlds];
};

template <class V, class Sensor, class Env>
Seen look(Lanes<Env, Scalar<V>>& lanes) {
  using T = Scalar<V>;
  Seen seen;
  const V zero = splat<V>(T(0)), one = splat<V>(T(1));
  const Observer<V> self{zero, zero, one, zero, splat<V>(lanes.params.vessel.radius)};
  const auto s = lanes.state();
  for (int w = 0; w < kWorlds; w += kLaneCount<V>) {
    for (int i = 0; i < kLaneCount<V>; ++i) seen.number[w + i].resize(Sensor::kSize);
    const auto put = [&](int at, V value) {
      for (int i = 0; i < kLaneCount<V>; ++i) seen.number[w + i][at] = lane<V>(value, i);
    };
    const auto random = s.template random<V>(w, 0);
    const auto sighting = Sensor::template observe<true, V>(s, lanes.params, random, self, zero,
                                                            zero, 0, w, put);
    for (int i = 0; i < kLaneCount<V>; ++i)
      seen.contact[w + i] = lane<V>(sighting.contact, i) != 0;
  }
  return seen;
}

bool near(double a, double b) { return std::abs(a - b) < 2e-5; }

/// Beams that all point ahead: what one meets does not depend on which it is.
template <class T>
struct Ahead : Lanes<MarineBeams, T> {
  explicit Ahead(const std::map<std::string, double>& given) : Lanes<MarineBeams, T>(given) {
    for (int i = 0; i < kBeams; ++i) this->real["beam"][i] = T(1);
  }
  /// Whether beam i of every world shows `expected(w, i)` m ahead, nothing if that is negative.
  template <class V, class Expected>
  bool shows(const Expected& expected) {
    const Seen seen = look<V, Beams>(*this);
    bool all = true;
    for (int w = 0; w < kWorlds; ++w) {
      for (int i = 0; i < kBeams; ++i) {
        const double x = expected(w, i), hit = x < 0 ? 0.0 : 1.0;
        const std::vector<double>& row = seen.number[w];
        all = all && near(row[2 * i], hit * x) && row[2 * i + 1] == 0.0;
        all = all && row[2 * kBeams + i] == hit;
      }
    }
    return all;
  }
};

template <class V, class T = Scalar<V>>
void test_beams(const std::string& type) {
  constexpr double kNone = -1.0;
  {
    Ahead<T> lanes({{"perception.miss", 0.4}});
    lanes.buoy(0, 5.0, 0.0);
    int missed = 0;
    const auto expected = [&](int w, int i) {
      const bool miss = lanes.words(15, w, i / 4)[i % 4] < 0.4;
      missed += miss;
      return miss ? kNone : 4.0;
    };
    report(lanes.template shows<V>(expected), "each beam is missed by a word of its own, " + type);
    report(missed > 30 && missed < 120, "and some are, " + type);
  }
  {
    Ahead<T> lanes({{"perception.dropout", 0.5}});
    lanes.buoy(0, 5.0, 0.0);
    const auto expected = [&](int w, int) { return lanes.words(14, w)[0] < 0.5 ? kNone : 4.0; };
    report(lanes.template shows<V>(expected), "a dropout empties the scan, " + type);
  }
  {
    Ahead<T> lanes({{"perception.delay", 0.5}});
    lanes.vessel(10.0, 0.0, 9.0, 0.0);
    const auto expected = [&](int w, int) { return lanes.words(14, w)[1] < 0.5 ? 7.0 : 8.0; };
    report(lanes.template shows<V>(expected), "a late scan has the vessel where it was, " + type);
  }
  {
    Ahead<T> lanes({{"perception.range_factor.0", 0.1}});
    lanes.buoy(0, 5.0, 0.0);
    for (int w = 0; w < kWorlds; ++w) lanes.real["reach"][w] = T(w % 2 == 0 ? 0.19 : 0.21);
    const auto expected = [](int w, int) { return w % 2 == 0 ? kNone : 4.0; };
    report(lanes.template shows<V>(expected), "a range of 3.8 m ends before 4 m, " + type);
  }
  {
    Ahead<T> lanes({{"perception.range_std", 1.5}, {"perception.range_factor.0", 0.1}});
    lanes.buoy(0, 5.0, 0.0);
    for (int w = 0; w < kWorlds; ++w) lanes.real["sensor"][w] = T(2), lanes.real["reach"][w] = T(0.25);
    int clamped = 0;
    const auto expected = [&](int w, int i) {
      const std::vector<double> u = lanes.words(18, w, i / 4);
      const int pair = i % 4 / 2 * 2;  // Box and Muller
      const double angle = 2.0 * kPi<double> * u[pair + 1];
      const double normal = std::sqrt(-2.0 * std::log(1.0 - u[pair])) *
                            (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
      const double noisy = 4.0 + 2.0 * 1.5 * normal;
      clamped += noisy < 0.0 || noisy > 5.0;
      return std::fmin(std::fmax(noisy, 0.0), 5.0);
    };
    report(lanes.template shows<V>(expected), "noise has its factor and stays in range, " + type);
    report(clamped > 20 && clamped < 150, "some of it had to be clamped, " + type);
  }
}

template <class V, class T = Scalar<V>>
void test_contact(const std::string& type) {
  Ahead<T> lanes({{"perception.dropout", 1.0}, {"perception.delay", 1.0}});
  lanes.vessel(3.9, 0.0, 9.0, 0.0);
  Seen seen = look<V, Beams>(lanes);
  bool touched = true, free = true;
  for (int w = 0; w < kWorlds; ++w) touched = touched && seen.contact[w];
  lanes.vessel(9.0, 0.0, 3.9, 0.0);
  seen = look<V, Beams>(lanes);
  for (int w = 0; w < kWorlds; ++w) free = free && !seen.contact[w];
  report(touched, "a contact that nobody sees counts, " + type);
  report(free, "a contact of a decision ago does not, " + type);
}

/// Twenty rays: the first ten ahead in sector 0, the others astern in sector 1.
template <class V, class T = Scalar<V>>
void test_sectors(const std::string& type) {
  Lanes<MarineSectors, T> lanes({{"perception.miss", 0.85}, {"perception.delay", 0.5}});
  std::vector<T>& ray = lanes.real["ray"];
  for (int i = 0; i < 20; ++i) ray[i] = T(i < 10 ? 1 : -1), ray[2 * kMostRays + i] = T(i / 10);
  lanes.vessel(10.0, 2.0, 9.0, 1.5);
  lanes.buoy(0, -6.0, 0.0), lanes.buoy(1, -8.0, 0.0);
  bool all = true;
  int empty = 0;
  const Seen seen = look<V, Sectors>(lanes);
  for (int w = 0; w < kWorlds; ++w) {
    const bool late = lanes.words(14, w)[1] < 0.5;
    bool met[2] = {false, false};
    for (int i = 0; i < 20; ++i)
      met[i / 10] = met[i / 10] || lanes.words(15, w, i / 4)[i % 4] >= 0.85;
    const double ahead = late ? 7.0 : 8.0, speed = late ? 1.5 : 2.0;
    const std::vector<double>& row = seen.number[w];
    all = all && near(row[0], met[0] ? 1.0 - ahead / 20.0 : 0.0);
    all = all && near(row[1], met[0] ? speed : 0.0) && row[2] == 0.0;
    all = all && near(row[3], met[1] ? 1.0 - 5.0 / 20.0 : 0.0) && row[4] == 0.0;
    all = all && row[27] == (met[0] ? 1.0 : 0.0) && row[28] == (met[1] ? 1.0 : 0.0);
    empty += !met[0] + !met[1];
  }
  report(all, "sectors have what their rays return, " + type);
  report(empty > 0, "and some none, " + type);
}

/// A sector of two rays, one at a vessel and one at a buoy: noise says which is the shortest.
template <class V, class T = Scalar<V>>
void test_shortest(const std::string& type) {
  Lanes<MarineSectors, T> lanes({{"perception.range_std", 1.0}});
  std::vector<T>& ray = lanes.real["ray"];
  for (int i = 0; i < 20; ++i) ray[2 * kMostRays + i] = T(i < 2 ? 0 : 1);
  ray[0] = T(1), ray[1] = T(-1);
  lanes.vessel(10.0, 2.0, 0.0, 0.0);
  lanes.buoy(0, -9.5, 0.0);
  bool all = true;
  int vessels = 0;
  const Seen seen = look<V, Sectors>(lanes);
  for (int w = 0; w < kWorlds; ++w) {
    const std::vector<double> u = lanes.words(18, w);
    const double radius = std::sqrt(-2.0 * std::log(1.0 - u[0])), angle = 2.0 * kPi<double> * u[1];
    const double vessel = 8.0 + radius * std::cos(angle), buoy = 8.5 + radius * std::sin(angle);
    const std::vector<double>& row = seen.number[w];
    all = all && near(row[0], 1.0 - std::fmin(vessel, buoy) / 20.0);
    all = all && near(row[1], vessel < buoy ? 2.0 : 0.0) && row[27] == 1.0 && row[28] == 0.0;
    vessels += vessel < buoy;
  }
  report(all, "a velocity is that of what the ray that measures least meets, " + type);
  report(vessels > 0 && vessels < kWorlds, "which is one or the other, " + type);
}

template <class V>
void test_all(const std::string& type) {
  test_beams<V>(type);
  test_contact<V>(type);
  test_sectors<V>(type);
  test_shortest<V>(type);
}

}  // namespace
}  // namespace marinenav::test

int main() {
  using namespace marinenav;
  using namespace marinenav::test;
  test_all<float>("float32 scalar");
  test_all<PackF>("float32 lanes");
  test_all<double>("float64");
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
