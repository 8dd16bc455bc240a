// What the guides in docs/ add to the core, without torch's tensors: the punt of adding_a_vessel.md
// and the tow of adding_a_disturbance.md. Input: pairs of a parameter's name and value; prints
// `type parameter-names` first, then each vessel's motion after its decisions.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>

#include "envs.h"
#include "launchers.h"

namespace marinenav::test {
namespace {

/// One world of one robot of a type, with tensors by its specification.
template <class Env>
struct Alone {
  std::map<std::string, std::vector<double>> memory;
  Tables tables;
  typename Env::template Params<double> params;

  explicit Alone(const std::map<std::string, double>& given) {
    std::vector<double> numbers;
    std::printf("%s", Env::kName);
    for (const std::string& name : param_names<Env>()) {
      numbers.push_back(given.count(name) != 0 ? given.at(name) : 0.0);
      std::printf(" %s", name.c_str());
    }
    std::printf("\n");
    params = unpack_params<Env, double>(numbers.data());
    for (const char* name : {"worlds", "robots", "frames", "stages"}) tables.set_size(name, 1);
    for (const char* name : {"buoys", "vortices", "scenes"}) tables.set_size(name, 0);
    tables.set_size("stride", kRowAlignment);
    for (const TensorSpecs& specs :
         {Env::state(), Env::tables(), Env::observation(), StepView<double>::specs()}) {
      for (const TensorSpec& spec : specs) {
        size_t count = 1;
        for (const Extent& e : spec.shape) count *= e.name == nullptr ? e.size : tables.size(e.name);
        memory[spec.name].resize(count + 1);
        tables.add(spec.name, memory[spec.name].data());
      }
    }
  }

  /// Takes decisions with these thrusts, and prints surge, sway (m/s) and yaw rate (rad/s).
  void sail(double left, double right, int decisions) {
    using F = typename Env::Robot;
    typename Env::template State<double> s(tables);
    const Outlining<CpuLauncher<OneThread>> launcher;
    *s.status_at(0, 0) = kAlive;
    *s.robot_at(F::kGoalX, 0, 0) = 1e6;
    *s.robot_at(F::kLeftThrust, 0, 0) = left, *s.robot_at(F::kRightThrust, 0, 0) = right;
    const double still[] = {0.0, 0.0};
    const ActionView<double> action{still, nullptr};
    const typename Env::template IntegratePhase<double> integrate{s, params, action};
    for (int i = 0; i < decisions; ++i) launcher(1, 1, integrate);
    const auto at = [&](int field) { return *s.robot_at(field, 0, 0); };
    const SinCos<double> h = sincos_of(at(F::kHeading));
    std::printf("%.17g %.17g %.17g\n", h.cos * at(F::kVxWater) + h.sin * at(F::kVyWater),
                h.cos * at(F::kVyWater) - h.sin * at(F::kVxWater), at(F::kYawWater));
  }
};

}  // namespace
}  // namespace marinenav::test

int main() {
  using marinenav::test::Alone;
  std::map<std::string, double> given;
  std::string name;
  for (double value; std::cin >> name >> value;) given[name] = value;
  Alone<marinenav::Marine>(given).sail(0.0, 0.0, 1);
  given["tow.force"] = 0.0;
  Alone<marinenav::Marine>(given).sail(600.0, 200.0, 20);
  Alone<marinenav::PuntEnv>(given).sail(600.0, 200.0, 20);
}
