// Makes untrusted texts printable, for logs and errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace lrpc::shim {

/// The first `most` bytes of `text`, with a '?' for each byte that is not printable ASCII.
[[nodiscard]] inline std::string printable(std::string_view text, std::size_t most = 200) {
  std::string words(text.substr(0, most));
  std::ranges::replace_if(
      words, [](char c) { return c < ' ' || c > '~'; }, '?');
  return words;
}

}  // namespace lrpc::shim
