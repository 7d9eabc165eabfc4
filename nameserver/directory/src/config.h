// lrpc-directory's configuration file, in TOML. docs/DIRECTORY.md has an example with all options.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "etcd/etcd.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::directory {

inline constexpr const char* kSystemConfig = "/etc/lrpc/directory.toml";

struct Config {
  bool etcd = false;  ///< directory = "etcd".
  EtcdOptions server;
  std::string prefix = "/lrpc";
  std::chrono::seconds lease{30};
  std::chrono::seconds oldest{300};
};

/// Errors: invalid_argument, whose text has one line per mistake. Does not read the password file.
[[nodiscard]] Result<Config> parse_config(std::string_view text);
/// Reads the file and the password file, and opens the TLS files. Errors: as parse_config(); not_permitted (others can
/// read the password, or change one of the files), system_error.
[[nodiscard]] Result<Config> read_config(const std::string& path);

/// libcurl opens the TLS files for each connection, after the process has given up its privileges. Error: system_error,
/// if the process as it is now cannot read one of them.
[[nodiscard]] Status check_tls_files(const Config& config);

/// The risk of a valid configuration: a password that is sent over the network in plain text.
[[nodiscard]] std::optional<std::string> risk_of(const Config& config);

/// The TCP port of an endpoint.
[[nodiscard]] std::uint16_t port_of(const std::string& endpoint);

}  // namespace lrpc::directory
