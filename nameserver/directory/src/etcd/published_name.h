// What one host says of one name in etcd: key and value, and back. Whoever may write to etcd has written what is read
// here, so it is checked, and what is not right counts as not there.
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

/// "10.0.0.2".
[[nodiscard]] std::string host_text(Host host);
/// An address that one host can have: not 0.x, not 127.x, not multicast or above. Nothing for anything else.
[[nodiscard]] std::optional<Host> parse_host(std::string_view text);

/// The longest value that is read, in bytes. A written one has at most 500.
inline constexpr std::size_t kMostValue = 1024;

struct PublishedName {
  std::string name;
  Host host = 0;
  std::uint64_t instance = 0;  ///< Of the lrpc-directory that has written it, random for each start.
  shim::OwnedInterfaceId interface;
};

/// `prefix` begins with a '/' and does not end with one.
[[nodiscard]] std::string key_of(std::string_view prefix, std::string_view name, Host host);
/// What all keys of `name` begin with; they differ in what follows: the host.
[[nodiscard]] std::string keys_of_name(std::string_view prefix, std::string_view name);
/// What the keys of all names begin with.
[[nodiscard]] std::string keys_of_all(std::string_view prefix);

[[nodiscard]] std::string value_of(const PublishedName& published);

/// Nothing if the key is not one of `prefix`, the value is not as above, or the two name different hosts. A field that
/// is not known is ignored, so that later formats can add some; another "format" is not read. Allocates.
[[nodiscard]] std::optional<PublishedName> parse_published(std::string_view prefix, std::string_view key,
                                                           std::string_view value);

}  // namespace lrpc::directory
