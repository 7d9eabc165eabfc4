#include "lrpc/detail/shim/escaped.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

namespace lrpc::shim {

std::string_view words_of_exception() noexcept try { throw; } catch (const std::exception& exception) {
  const char* const what = exception.what();  // a program's own may return null
  return what != nullptr ? what : "what() says nothing";
} catch (...) {
  return "not a std::exception";
}

void EscapedExceptions::print(const From& from, std::string_view whose) noexcept {
  if (silent()) return;
  const std::uint32_t before = printed_.fetch_add(1, std::memory_order_relaxed);
  if (before >= kPrinted) return;
  // One line: what() may hold a peer's text, which must not begin another.
  std::array<char, 500> words;
  const std::string_view said = words_of_exception().substr(0, words.size());
  std::ranges::replace_copy_if(
      said, words.begin(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  const auto size = [](std::string_view text) { return static_cast<int>(text.size()); };
  const bool last = before + 1 == kPrinted;
  std::fprintf(stderr, "lrpc: an exception escaped %.*s%.*s%.*s: %.*s%s%.*s%s\n", size(from.first), from.first.data(),
               size(from.between), from.between.data(), size(from.second), from.second.data(), size(said), words.data(),
               last ? " (no further ones of " : "", last ? size(whose) : 0, whose.data(), last ? " are printed)" : "");
}

}  // namespace lrpc::shim
