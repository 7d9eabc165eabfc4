// Shell-style patterns of names.
#pragma once

#include <string>
#include <string_view>

namespace lrpc::nameserver {

/// Whether `name` matches `pattern`: as fnmatch(3) without flags in the C locale, but for bytes, without its character
/// classes, and in time proportional to the product of the two lengths: names come from peers, and a pattern with many
/// stars must not hold up the event loop.
///
///   *   any characters, also none        [abc], [a-z]   one of these        [!abc]   one that is none of these
///   ?   one character                    \c             the character c     c        itself
///
/// A `[` that nothing closes stands for itself.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name) noexcept;

/// Why no name can ever match `pattern`; empty if one can.
[[nodiscard]] std::string pattern_error(std::string_view pattern);

}  // namespace lrpc::nameserver
