// Makes untrusted texts printable, for logs and errors.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace lrpc::directory {

/// The first 200 bytes of `text`, with a '?' for each byte that is not printable ASCII.
[[nodiscard]] inline std::string printable(std::string_view text) {
  std::string words(text.substr(0, 200));
  std::ranges::replace_if(
      words, [](char c) { return c < ' ' || c > '~'; }, '?');
  return words;
}

}  // namespace lrpc::directory
