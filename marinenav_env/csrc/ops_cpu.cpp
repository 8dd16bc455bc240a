#include <ATen/Parallel.h>

#include <cstring>

#include "envs.h"
#include "kernel/binding.h"
#include "kernel/cpu_launcher.h"
#include "kernel/rows_op.h"
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

}  // namespace

TORCH_LIBRARY_IMPL(marinenav, CPU, m) {
  register_kernels<CpuBackend, Envs>(m);
  register_plans<CpuBackend, Envs>(m);
  m.impl("write_row", &write_row<CpuBackend>);
  m.impl("water", &water<CpuBackend, Envs>);
}

}  // namespace marinenav
