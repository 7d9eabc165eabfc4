// toml++ whose assertions throw. In its version 3.3 some texts that are no TOML, such as a line that begins with a zero
// byte, fail an assertion, or where assertions are off an assumption of the optimizer's; a daemon must survive both.
//
// The library is renamed so that no other part of a program shares these functions with us. For one source file only.
#pragma once

#include <stdexcept>

namespace lrpc::nameserver {
[[noreturn]] inline void toml_assertion_failed() {
  throw std::logic_error("this is no TOML, and toml++ does not say why");
}
}  // namespace lrpc::nameserver

#define toml lrpc_toml
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(expression) ((expression) ? static_cast<void>(0) : ::lrpc::nameserver::toml_assertion_failed())
#define TOML_ASSERT_ASSUME(expression) TOML_ASSERT(expression)
#include <toml++/toml.h>
