// Prints the block size that the argument asks for (none: unset); exit status 1 if it is refused.
#include "kernel/block_size.h"

#include <cstdio>

int main(int count, char** arguments) {
  try {
    std::printf("%d\n", marinenav::block_size_from(count > 1 ? arguments[1] : nullptr));
    return 0;
  } catch (const std::invalid_argument& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
