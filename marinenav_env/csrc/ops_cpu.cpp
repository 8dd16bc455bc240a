#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstring>

#include "envs.h"
#include "kernel/binding.h"
#include "kernel/cpu_launcher.h"
#include "kernel/noise_op.h"
#include "kernel/rows_op.h"
#include "kernel/sum_tree_op.h"
#include "kernel/windows_op.h"
#include "marine/plans/ops.h"
#include "marine/water_op.h"

namespace marinenav {
namespace {

struct TorchThreads {
  template <class Body>
  void operator()(int64_t count, const Body& body) const {
    at::parallel_for(0, count, 1, body);
  }
};

template <class T>
struct CpuLanes {
  using Type = T;
};
template <>
struct CpuLanes<float> {
  using Type = PackF;
};

struct CpuBackend {
  template <class T>
  using Lanes = typename CpuLanes<T>::Type;
  static CpuLauncher<TorchThreads> launcher() { return {}; }
  static void write(const Row& row) {
    TORCH_CHECK(*row.position >= 0 && *row.position < row.rows, "marinenav: `position` is ",
                *row.position, ", expected 0 to ", row.rows - 1);
    launcher()(row.slots, row.parts, RowSlots{row});
  }
  static bool is_empty(const at::Tensor& mask) {
    return std::memchr(mask.const_data_ptr(), 1, static_cast<size_t>(mask.numel())) == nullptr;
  }
};

at::Tensor signed_root_of_torch(const at::Tensor& noise) {
  return noise.abs().sqrt_().copysign_(noise);
}

at::Tensor noisy_input_of_torch(const at::Tensor& noise, const at::Tensor& x) {
  const at::AutoDispatchBelowADInplaceOrView no_gradient;  // as for a kernel
  check_noise(noise);
  return signed_root_of_torch(noise).mul_(checked_like_noise(x, "x", noise));
}

at::Tensor noisy_output_of_torch(const at::Tensor& noise, const at::Tensor& spread,
                                 const at::Tensor& mean, const at::Tensor& bias_spread,
                                 const at::Tensor& bias) {
  const at::AutoDispatchBelowADInplaceOrView no_gradient;
  check_noise(noise);
  const at::Tensor own = checked_like_noise(spread, "spread", noise);
  const at::Tensor center = checked_like_noise(mean, "mean", noise);
  check_biases(noise, own, center, bias_spread, bias);
  at::Tensor root = signed_root_of_torch(noise);
  const at::Tensor biases = bias_spread.mul(root).add_(bias);
  return root.mul_(own).add_(center).add_(biases);
}

}  // namespace

TORCH_LIBRARY_IMPL(marinenav, CPU, m) {
  register_kernels<CpuBackend, Envs>(m);
  register_plans<CpuBackend, Envs>(m);
  m.impl("write_row", &write_row<CpuBackend>);
  m.impl("find_slots", &find_slots<CpuBackend>);
  m.impl("windows", &windows<CpuBackend>);
  m.impl("noisy_input", &noisy_input_of_torch);
  m.impl("noisy_output", &noisy_output_of_torch);
  m.impl("water", &water<CpuBackend, Envs>);
}

}  // namespace marinenav
