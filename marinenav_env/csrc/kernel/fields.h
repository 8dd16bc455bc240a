// Lists of fields and parameters. A field stands in one list; its member or number, its name, its
// place and how many there are follow from it.
#pragma once

#include "kernel/lane.h"

// A list of state fields takes X(enumerator, name).
#define MN_ENUMERATOR(enumerator, name) enumerator,
#define MN_NAME(enumerator, name) name " "

// A list of parameters takes X(name) for one number and XS(name, count) for several.
#define MN_ONE(name) T name;
#define MN_SEVERAL(name, count) T name[count];
#define MN_VISIT_ONE(name) visit(#name, 1, &this->name);
#define MN_VISIT_SEVERAL(name, count) visit(#name, count, &this->name[0]);
#define MN_SPREAD_ONE(name) name = T{} + from.name;
#define MN_SPREAD_SEVERAL(name, count) \
  for (int i = 0; i < count; ++i) name[i] = T{} + from.name[i];

/// A struct with the members of `list`; each(visit) calls visit(name, count, first number),
/// spread(from) takes the numbers of a struct of scalars into every lane.
#define MN_PARAMS(Struct, list)             \
  template <class T>                        \
  struct Struct {                           \
    list(MN_ONE, MN_SEVERAL)                \
    template <class Visit>                  \
    void each(const Visit& visit) {         \
      list(MN_VISIT_ONE, MN_VISIT_SEVERAL)  \
    }                                       \
    template <class U>                      \
    MN_HD void spread(const Struct<U>& from) { \
      list(MN_SPREAD_ONE, MN_SPREAD_SEVERAL) \
    }                                       \
  };
