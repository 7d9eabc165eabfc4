// The keys that hosts share, and the file they are written in:
//
//     # who            key (32 bytes in base64, as lrpc-netd --generate-key prints)
//     10.0.0.2         gTzXv0r0…=
//     10.1.0.0/16      k3J…=
//     *                9vQ…=
//
// The most specific line counts. All hosts that have a network's key can impersonate any host of it to each other. The
// same holds for several lines with one key. So with such a key a host may not send from another address than its own
// (Settings::anywhere).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/address.h"
#include "netrpc/protocols/auth/header.h"

namespace lrpc::netrpc::auth {

/// One line of the file. It holds what is derived from the key, not the key itself. Wiped on destruction.
struct Key {
  std::string name;  ///< As the file says: host, network or "*".
  std::uint32_t network = 0;
  unsigned prefix = 0;  ///< Bits of `network` that count.
  bool shared = false;  ///< Another line has the same key.
  MacKey mac{};         ///< Signs the handshake.
  MacKey derive{};      ///< Goes into the keys of associations.

  Key() = default;
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  Key(Key&&) = default;
  Key& operator=(Key&&) = default;
  ~Key();
  /// Whether only the host of this line has the key, besides this host: then the key proves which host sends.
  [[nodiscard]] bool of_one_host() const noexcept { return prefix == 32 && !shared; }
  [[nodiscard]] bool same_secret(const Key& other) const noexcept;
};

class KeyRing {
 public:
  /// Reads a file, which must belong to this user or to root, and which only its owner may be able to read. Errors:
  /// those of shim::read_own_file(); invalid_argument (a line is wrong). The text says what to do.
  static Result<KeyRing> read(const std::string& path);
  /// The same from text; `name` is the prefix of errors.
  static Result<KeyRing> parse(std::string_view text, std::string_view name);

  /// The most specific key for `host`; null: there is none. Time: at most linear in the number of lines.
  [[nodiscard]] const Key* find(HostAddress host) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  std::vector<Key> keys_;  ///< The most specific first.
};

/// A new random key in base64.
[[nodiscard]] std::string generate_key();

}  // namespace lrpc::netrpc::auth
