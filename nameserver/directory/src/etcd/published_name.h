// What one host publishes of one name in etcd, as key and value. Anybody who may write to etcd may have written what is
// read here: so it is checked, and an invalid entry counts as absent.
//
//   key    PREFIX/names/NAME/HOST               /lrpc/names/files/10.0.0.2
//   value  {"format":1, "host":"10.0.0.2", "instance":"16 hex digits", "interface":"Files", "major":1, "minor":0,
//           "hash":"16 hex digits"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::directory {

/// An IPv4 address in host order.
using Host = std::uint32_t;

/// An address as text, such as "10.0.0.2".
[[nodiscard]] std::string host_text(Host host);
/// An address that one host can have: not 0.x, not 127.x, not multicast or above. Nothing for anything else.
[[nodiscard]] std::optional<Host> parse_host(std::string_view text);

/// The longest value that is read, in bytes. A written one has at most 500.
inline constexpr std::size_t kMostValue = 1024;

struct PublishedName {
  std::string name;
  Host host = 0;
  std::uint64_t instance = 0;  ///< Of the lrpc-directory that wrote it, random for each start.
  shim::OwnedInterfaceId interface;
};

/// `prefix` begins with a '/' and does not end with one.
[[nodiscard]] std::string key_of(std::string_view prefix, std::string_view name, Host host);
/// The common prefix of all keys of `name`; the host follows it.
[[nodiscard]] std::string keys_of_name(std::string_view prefix, std::string_view name);
/// The common prefix of the keys of all names.
[[nodiscard]] std::string keys_of_all(std::string_view prefix);

[[nodiscard]] std::string value_of(const PublishedName& published);

/// Nothing unless key and value have the forms above, the key with this `prefix`, and both name the same host.
/// Unknown fields are ignored, so that later versions can add some; another "format" is not read. Allocates.
[[nodiscard]] std::optional<PublishedName> parse_published(std::string_view prefix, std::string_view key,
                                                           std::string_view value);

}  // namespace lrpc::directory
