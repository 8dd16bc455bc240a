// Lets a torch without CUDA follow fake tensors on a CUDA device: switching to it does nothing.
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {
using NoGuard = c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA>;
C10_REGISTER_GUARD_IMPL(CUDA, NoGuard)
}  // namespace
