// What an environment's tensors are: their names, numbers, shapes and fields, and how a type finds
// them again. Python allocates by this specification and the operators check against it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace marinenav {

enum class Number { kReal, kInt, kBool };

/// An extent of a tensor: a number, or the name of one that the tensors decide.
struct Extent {
  int64_t size = 0;
  const char* name = nullptr;
  Extent(int count) : size(count) {}           // NOLINT(google-explicit-constructor)
  Extent(const char* symbol) : name(symbol) {}  // NOLINT(google-explicit-constructor)
};

struct TensorSpec {
  const char* name;
  Number number;
  std::vector<Extent> shape;
  std::string fields = {};  // names of the first extent's entries, or of the last one's where it is
                            // a tensor per robot; separated by blanks
  bool optional = false;    // may be empty
};

using TensorSpecs = std::vector<TensorSpec>;

inline TensorSpecs joined(std::initializer_list<TensorSpecs> parts) {
  TensorSpecs all;
  for (const TensorSpecs& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Pointers and extents by name. Few enough that a search is faster than a map.
class Tables {
 public:
  Tables() {
    pointers_.reserve(32);
    sizes_.reserve(16);
  }
  void add(const char* name, void* data) { pointers_.push_back({name, data}); }
  void set_size(const char* name, int64_t size) { sizes_.push_back({name, size}); }

  template <class X>
  X* at(const char* name) const {
    return static_cast<X*>(find(pointers_, name));
  }
  int size(const char* name) const { return static_cast<int>(find(sizes_, name)); }
  /// The extent called `name`, or -1.
  int64_t known_size(const char* name) const {
    const Named<int64_t>* known = search(sizes_, name);
    return known ? known->value : -1;
  }
  uint64_t seed = 0;
  uint32_t first_world = 0;  // global index of world 0

 private:
  template <class X>
  struct Named {
    const char* name;
    X value;
  };
  /// The entry called `name`, or null. Equal literals of a translation unit mostly are one, so that
  /// few names have to be read.
  template <class X>
  static const Named<X>* search(const std::vector<Named<X>>& all, const char* name) {
    for (const Named<X>& one : all)
      if (one.name == name) return &one;
    for (const Named<X>& one : all)
      if (std::strcmp(one.name, name) == 0) return &one;
    return nullptr;
  }
  /// The value called `name`; zero where a specification lacks it.
  template <class X>
  static X find(const std::vector<Named<X>>& all, const char* name) {
    const Named<X>* found = search(all, name);
    return found ? found->value : X{};
  }
  std::vector<Named<void*>> pointers_;
  std::vector<Named<int64_t>> sizes_;
};

}  // namespace marinenav
