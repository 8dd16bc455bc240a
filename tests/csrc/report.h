// Results of checks.
#pragma once

#include <cstdio>
#include <string>

namespace marinenav::test {

inline int failures = 0;

inline void report(bool passed, const std::string& what) {
  std::printf("%s  %s\n", passed ? "ok    " : "FAILED", what.c_str());
  if (!passed) ++failures;
}

inline void report_error(double error, double limit, const std::string& what) {
  char text[200];
  std::snprintf(text, sizeof text, "%s: error %.3g, allowed %.3g", what.c_str(), error, limit);
  report(error <= limit, text);  // a NaN fails too
}

}  // namespace marinenav::test
