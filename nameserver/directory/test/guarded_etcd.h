// What an etcd that asks who one is needs: certificates, users and passwords, as an administrator makes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "etcd_server.h"

namespace lrpc::directory::test {

inline constexpr const char* kUser = "lrpc";
inline constexpr const char* kPassword = "se\"cret";

/// A user that may write names, and nothing else. From then on etcd asks.
void make_users(const EtcdServer& server, const TlsOptions& tls);

/// Made by openssl(1). They have no common name (CN): etcd's gateway would take it for a user, and refuses where it has
/// users.
class Certificates {
 public:
  /// Why none can be made here; nothing if they can.
  static std::optional<std::string> why_none();
  /// Of an etcd at this address, of its client, and of a stranger, whom another authority has signed.
  explicit Certificates(const std::string& address);

  [[nodiscard]] std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  void run(const std::string& command) const;
  [[nodiscard]] std::vector<std::string> of_server() const;
  [[nodiscard]] TlsOptions of_client() const;
  /// A client's part of lrpc-directory's configuration: certificates, this user, and the password.
  [[nodiscard]] std::string settings(const std::string& user = kUser) const;

 private:
  testing_lrpc::TemporaryDirectory directory_;
};

}  // namespace lrpc::directory::test
