#include "envs.h"
#include "kernel/binding.h"
#include "kernel/cuda_launcher.cuh"
#include "kernel/noise_op.h"
#include "kernel/rows_op.h"
#include "kernel/sum_tree_op.h"
#include "kernel/windows_op.h"
#include "marine/plans/ops.h"
#include "marine/water_op.h"

namespace marinenav {
namespace {

struct CudaBackend {
  template <class T>
  using Lanes = T;
  static CudaLauncher launcher() { return {}; }
  /// The position is on the device, where the host does not look.
  static void write(const Row& row) { launcher()(static_cast<int>(row.words), 1, RowWords{row}); }
  /// The host may not look at the device: each thread finds its own world's bit and leaves.
  static bool is_empty(const at::Tensor&) { return false; }
};

}  // namespace

TORCH_LIBRARY_IMPL(marinenav, CUDA, m) {
  register_kernels<CudaBackend, Envs>(m);
  register_plans<CudaBackend, Envs>(m);
  m.impl("write_row", &write_row<CudaBackend>);
  m.impl("find_slots", &find_slots<CudaBackend>);
  m.impl("windows", &windows<CudaBackend>);
  m.impl("noisy_input", &noisy_input<CudaBackend>);
  m.impl("noisy_output", &noisy_output<CudaBackend>);
  m.impl("water", &water<CudaBackend, Envs>);
}

}  // namespace marinenav
