// A list of environment types, and the one that a name stands for.
#pragma once

#include <c10/util/Exception.h>

#include <string_view>

namespace marinenav {

template <class... Env>
struct EnvList {};

template <class Env>
struct Tag {
  using Type = Env;
};

/// Calls body(Tag<Env>) for the environment called `name`.
template <class... Env, class Body>
void with_env(EnvList<Env...>, std::string_view name, const Body& body) {
  const bool known = ((name == Env::kName && (body(Tag<Env>{}), true)) || ...);
  TORCH_CHECK(known, "marinenav: no environment is called `", name, "`");
}

}  // namespace marinenav
