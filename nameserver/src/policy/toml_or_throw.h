// toml++ whose assertions throw. In its version 3.3 some texts that are no TOML, such as a line that begins with a zero
// byte, fail an assertion, or where assertions are off an assumption of the optimizer's; a daemon must survive both.
//
// The library is renamed so that no other part of a program shares these functions with us.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

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

namespace lrpc::nameserver {

/// As toml::parse(). Some letters that are no ASCII lead its version 3.3 to a place that its optimizer assumes never to
/// be reached; in comments and quotes they do not.
inline toml::table parse_toml(std::string_view text) {
  int line = 1;
  char within = 0;  // the comment's or quote's first character; 0: neither
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      within = 0;
    } else if (within == 0) {
      if (static_cast<unsigned char>(c) > 0x7f)
        throw std::logic_error("line " + std::to_string(line) + ": only comments and quotes may have more than ASCII");
      if (c == '#' || c == '"' || c == '\'') within = c;
    } else if (within == '"' && c == '\\' && i + 1 < text.size() && text[i + 1] != '\n') {
      ++i;
    } else if (c == within && c != '#') {
      within = 0;
    }
  }
  return toml::parse(text);
}

}  // namespace lrpc::nameserver
