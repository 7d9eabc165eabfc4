// A real etcd of the distribution, for one test: its own data, its own ports, ended with the object.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etcd/etcd.h"
#include "world.h"

namespace lrpc::directory::test {

/// Why there is no etcd here; nothing if there is one.
std::optional<std::string> why_no_etcd();

class EtcdServer {
 public:
  /// Runs its argument where the server is to be: on this host, or in a namespace.
  using Where = std::function<void(const std::function<void()>&)>;

  /// On loopback, at ports that were free.
  EtcdServer();
  /// At port 2379 of `address`, where nobody else is; with TLS, if there are `options`, as below.
  EtcdServer(const std::string& address, Where where, std::vector<std::string> options = {});
  /// With TLS on loopback; `options` has the certificates.
  explicit EtcdServer(std::vector<std::string> options);

  /// Returns when it serves. The data are those of before, if any. Throws std::runtime_error if it does not start.
  void start();
  /// As a power failure does.
  void kill() { process_ = {}; }
  void send(int signal) const { process_.send(signal); }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  /// While it does not run: with no data.
  void forget() const;

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] EtcdOptions options() const;

 private:
  friend class EtcdCluster;
  /// A member of a cluster, which is not started.
  EtcdServer(int port, std::vector<std::string> options) : port_(port), options_(std::move(options)) {}
  [[nodiscard]] std::string peer_url(int port) const;
  bool start_at(int port);
  void spawn_at(int port);
  [[nodiscard]] bool begins_to_serve(int port) const;
  [[nodiscard]] bool has_ended() const;
  /// This process listens at the port, and not another one that has taken it.
  [[nodiscard]] bool listens(int port) const;
  /// Says something to a client, if only that it does not accept it. Waits for that.
  [[nodiscard]] bool answers(int port) const;
  [[nodiscard]] std::string log() const;

  testing_lrpc::TemporaryDirectory directory_;
  std::string address_ = "127.0.0.1";
  std::string scheme_ = "http";
  int port_ = 0;
  std::string url_;
  std::vector<std::string> options_;
  Where where_ = [](const std::function<void()>& procedure) { procedure(); };
  testing_lrpc::Process process_;
};

/// Three members of one etcd on loopback. Two of them suffice.
class EtcdCluster {
 public:
  static constexpr std::size_t kMembers = 3;
  /// Returns when all serve. Throws std::runtime_error if they do not.
  EtcdCluster();
  void kill(std::size_t member) { members_.at(member)->kill(); }
  /// With the endpoints of all members in their order.
  [[nodiscard]] EtcdOptions options() const;

 private:
  [[nodiscard]] bool start();
  std::vector<std::unique_ptr<EtcdServer>> members_;
};

}  // namespace lrpc::directory::test
