// The operator that writes a row of rings.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <vector>

#include "kernel/block_size.h"
#include "kernel/rows.h"

namespace marinenav {

/// Numbers from a slot of a part [...slots, ...] to the next; -1 where it has other slots than the ring,
/// or they are not dense, or not equally far apart.
inline int64_t slot_stride(const at::Tensor& part, const at::Tensor& ring) {
  const int64_t slot_dims = ring.dim() - 2;
  if (part.dim() < slot_dims ||
      part.sizes().slice(0, slot_dims) != ring.sizes().slice(1, slot_dims)) return -1;
  int64_t dense = 1;
  for (int64_t d = part.dim() - 1; d >= slot_dims; --d) {
    if (part.size(d) != 1 && part.stride(d) != dense) return -1;
    dense *= part.size(d);
  }
  int64_t stride = dense, next = -1;  // of a part with a single slot the stride does not matter
  for (int64_t d = slot_dims - 1; d >= 0; --d) {
    if (part.size(d) == 1) continue;
    if (next < 0) stride = next = part.stride(d);
    if (part.stride(d) != next || stride < dense) return -1;
    next *= part.size(d);
  }
  return stride;
}

/// What `write_row` copies, checked: ring k [T, ...slots, width] takes the next counts[k] of the parts
/// [...slots, width], side by side. A part may be the same places in each slot of a larger tensor; of
/// one in other disorder a copy is kept in `copies`.
inline Row checked_row(at::TensorList rings, at::TensorList parts, at::IntArrayRef counts,
                       const at::Tensor& position, std::vector<at::Tensor>& copies) {
  TORCH_CHECK(!rings.empty(), "marinenav: `rings` holds no tensor");
  TORCH_CHECK(counts.size() == rings.size(), "marinenav: `counts` has ", counts.size(),
              " entries, expected one for each of ", rings.size(), " rings");
  TORCH_CHECK(parts.size() <= Row::kMostParts, "marinenav: `parts` holds ", parts.size(),
              " tensors, expected ", Row::kMostParts, " at most");
  const c10::Device device = rings.front().device();
  TORCH_CHECK(position.scalar_type() == c10::kLong && position.numel() == 1,
              "marinenav: `position` must be one int64");
  Row row{};
  row.position = position.const_data_ptr<int64_t>();
  const auto check = [&](const at::Tensor& t, const char* name) {
    TORCH_CHECK(t.device() == device, "marinenav: `", name, "` is on ", t.device(), ", expected ",
                device);
  };
  const auto check_whole = [&](const at::Tensor& t, const char* name) {
    check(t, name);
    TORCH_CHECK(t.is_contiguous(), "marinenav: `", name, "` must be contiguous");
  };
  check_whole(position, "position");
  for (size_t k = 0; k < rings.size(); ++k) {
    const at::Tensor& ring = rings[k];
    check_whole(ring, "rings");
    TORCH_CHECK(ring.dim() >= 3 && ring.numel() > 0, "marinenav: a ring has shape ", ring.sizes(),
                ", expected [rows, slots..., width]");
    const int64_t item = ring.element_size(), width = ring.size(-1);
    const int64_t slots = ring.numel() / (ring.size(0) * width);
    TORCH_CHECK(k == 0 || (slots == row.slots && ring.size(0) == row.rows), "marinenav: ring ", k,
                " has ", slots, " slots in ", ring.size(0), " rows, expected ", row.slots, " in ",
                row.rows, ", as the first");
    row.slots = static_cast<int>(slots), row.rows = ring.size(0);
    int64_t offset = 0;
    for (int64_t i = 0; i < counts[k]; ++i, ++row.parts) {
      TORCH_CHECK(row.parts < static_cast<int>(parts.size()), "marinenav: `parts` holds ",
                  parts.size(), " tensors, fewer than `counts` says");
      at::Tensor part = parts[static_cast<size_t>(row.parts)];
      check(part, "parts");
      TORCH_CHECK(part.scalar_type() == ring.scalar_type() && part.numel() % slots == 0,
                  "marinenav: a part of ring ", k, " has dtype ", part.scalar_type(), " and shape ",
                  part.sizes(), ", expected ", ring.scalar_type(), " and whole slots of ", slots);
      int64_t stride = slot_stride(part, ring);
      if (stride < 0) {
        copies.push_back(part = part.contiguous());
        stride = part.numel() / slots;
      }
      const int64_t bytes = part.numel() / slots * item;
      const int word = item % 4 == 0 ? 4 : 1;
      row.part[row.parts] = {static_cast<const char*>(part.const_data_ptr()),
                             static_cast<char*>(ring.data_ptr()) + offset,
                             slots * width * item,
                             static_cast<int>(bytes),
                             stride * item,
                             width * item,
                             word,
                             row.words};
      row.words += bytes / word * slots;
      offset += bytes;
    }
    TORCH_CHECK(offset == width * item, "marinenav: parts of ring ", k, " have ", offset / item,
                " numbers a slot, expected ", width);
  }
  TORCH_CHECK(row.parts == static_cast<int>(parts.size()), "marinenav: `parts` holds ",
              parts.size(), " tensors, more than `counts` says");
  TORCH_CHECK(row.words <= kMostAtOnce, "marinenav: a row of ", row.words, " words is too large");
  return row;
}

template <class Backend>
void write_row(at::TensorList rings, at::TensorList parts, at::IntArrayRef counts,
               const at::Tensor& position) {
  std::vector<at::Tensor> copies;
  const Row row = checked_row(rings, parts, counts, position, copies);
  const c10::DeviceGuard guard(position.device());
  Backend::write(row);
}

}  // namespace marinenav
