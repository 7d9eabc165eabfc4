// What the server's owner hears of an exception that left a procedure. Off the call path of calls that do not throw.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "call_path.h"

namespace lrpc::server {
namespace {

/// The exception that is being handled, in words.
std::string in_words() {
  try {
    throw;
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "not a std::exception";
  }
}

/// Prints one line: what() may hold a caller's text, which must not begin another.
void print(const EscapedException& escaped, bool last) {
  constexpr std::size_t kLongest = 500;
  std::string what(escaped.what.substr(0, kLongest));
  std::ranges::replace_if(
      what, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  std::fprintf(stderr, "lrpc: an exception escaped %.*s.%.*s: %s%s\n", static_cast<int>(escaped.interface.size()),
               escaped.interface.data(), static_cast<int>(escaped.procedure.size()), escaped.procedure.data(),
               what.c_str(), last ? " (no further ones of this export are printed)" : "");
}

}  // namespace

void tell_exception(const ServedInterface& interface, std::uint16_t procedure) noexcept {
  constexpr std::uint32_t kPrinted = 10;
  const auto& told = interface.options.on_exception;
  // The count stops, so that it never wraps around.
  if (!told && interface.exceptions.load(std::memory_order_relaxed) >= kPrinted) return;
  call_program([&] {
    const std::string what = in_words();
    const EscapedException escaped{interface.pdl->interface.name, interface.pdl->procedures[procedure].name, what};
    if (told) return told(escaped);
    const std::uint32_t before = interface.exceptions.fetch_add(1, std::memory_order_relaxed);
    if (before < kPrinted) print(escaped, before + 1 == kPrinted);
  });
}

}  // namespace lrpc::server
