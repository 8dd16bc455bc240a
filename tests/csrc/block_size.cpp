// Prints the block size that the argument asks for (none: unset), or of two arguments, worlds and rows,
// how many threads a launch has; exit status 1 if that is refused.
#include "kernel/block_size.h"

#include <cstdio>

int main(int count, char** arguments) {
  try {
    if (count > 2) {
      std::printf("%d\n", marinenav::launched(std::atoi(arguments[1]), std::atoi(arguments[2])));
    } else {
      std::printf("%d\n", marinenav::block_size_from(count > 1 ? arguments[1] : nullptr));
    }
    return 0;
  } catch (const std::logic_error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
