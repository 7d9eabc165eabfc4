#include "etcd_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "eventually.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::directory::test {
namespace {

/// A port of loopback below which another one is free, too; both may be taken by the time they are used.
int free_port() {
  for (;;) {
    const auto bound = [](int wanted) {
      std::pair<UniqueFd, int> made{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(wanted));
      socklen_t size = sizeof address;
      auto* const generic = reinterpret_cast<sockaddr*>(&address);
      if (::bind(made.first.get(), generic, size) == 0 && ::getsockname(made.first.get(), generic, &size) == 0)
        made.second = ntohs(address.sin_port);
      return made;
    };
    const auto one = bound(0);
    if (bound(one.second + 1).second != 0) return one.second;
  }
}

}  // namespace

std::optional<std::string> why_no_etcd() {
  static const bool here = std::system("command -v etcd > /dev/null") == 0;
  if (here) return std::nullopt;
  return "etcd is not here: install etcd-server";
}

EtcdServer::EtcdServer() { start(); }
EtcdServer::EtcdServer(const std::string& address, Where where, std::vector<std::string> options)
    : address_(address),
      scheme_(options.empty() ? "http" : "https"),
      port_(2379),
      options_(std::move(options)),
      where_(std::move(where)) {
  start();
}
EtcdServer::EtcdServer(std::vector<std::string> options) : scheme_("https"), options_(std::move(options)) { start(); }

EtcdOptions EtcdServer::options() const {
  EtcdOptions options;
  options.endpoints = {url_};
  options.timeout = std::chrono::minutes(4);  // a net for hangs: a loaded machine is waited for
  return options;
}

std::string EtcdServer::log() const {
  std::ifstream in(directory_.path() / "log");
  return {std::istreambuf_iterator<char>(in), {}};
}

void EtcdServer::forget() const { std::filesystem::remove_all(directory_.path() / "data"); }

void EtcdServer::start() {
  if (port_ != 0) {
    if (!start_at(port_)) throw std::runtime_error("etcd does not start:\n" + log());
    return;
  }
  for (int tries = 0; tries < 10; ++tries) {
    const int port = free_port();
    if (!start_at(port)) continue;  // somebody else has taken it
    port_ = port;
    return;
  }
  throw std::runtime_error("etcd does not start:\n" + log());
}

std::string EtcdServer::peer_url(int port) const { return "http://" + address_ + ":" + std::to_string(port + 1); }

bool EtcdServer::start_at(int port) {
  spawn_at(port);
  return begins_to_serve(port);
}

void EtcdServer::spawn_at(int port) {
  process_ = {};
  std::filesystem::remove(directory_.path() / "log");
  url_ = scheme_ + "://" + address_ + ":" + std::to_string(port);
  const std::string peer = peer_url(port);
  std::vector<std::string> arguments{
      "/bin/sh",
      "-c",
      "echo begins; unset ETCDCTL_API; exec etcd \"$@\" >/dev/null 2>" + (directory_.path() / "log").string(),
      "etcd",
      "--data-dir",
      (directory_.path() / "data").string(),
      "--listen-client-urls",
      url_,
      "--advertise-client-urls",
      url_,
      "--listen-peer-urls",
      peer,
      "--initial-advertise-peer-urls",
      peer,
      "--initial-cluster",
      "default=" + peer,
      "--heartbeat-interval",
      "20",
      "--election-timeout",
      "400"};
  arguments.insert(arguments.end(), options_.begin(), options_.end());
  where_([&] { process_ = testing_lrpc::Process(arguments); });
}

bool EtcdServer::begins_to_serve(int port) const {
  return testing_lrpc::eventually([&] { return listens(port) || has_ended(); }) && !has_ended() && answers(port);
}

bool EtcdServer::has_ended() const {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(process_.pid()), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != 0;
}

bool EtcdServer::listens(int port) const {
  namespace fs = std::filesystem;
  const std::string process = "/proc/" + std::to_string(process_.pid());
  std::ostringstream hex;
  hex << ':' << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << port;
  std::set<std::string> listening;
  for (const char* const family : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream in(process + family);
    for (std::string line; std::getline(in, line);) {
      std::istringstream fields(line);
      std::array<std::string, 10> field;  // 1: own address and port; 3: state; 9: inode
      for (std::string& one : field) fields >> one;
      if (field[1].ends_with(hex.str()) && field[3] == "0A") listening.insert("socket:[" + field[9] + "]");
    }
  }
  std::error_code gone;
  for (fs::directory_iterator at(process + "/fd", gone), end; !gone && at != end; at.increment(gone)) {
    std::error_code closed;
    if (listening.contains(fs::read_symlink(at->path(), closed).string())) return true;
  }
  return false;
}

bool EtcdServer::answers(int port) const {
  bool answered = false;
  where_([&] {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::inet_pton(AF_INET, address_.c_str(), &address.sin_addr) != 1) return;
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    const std::string request = "GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n";
    (void)::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    // It accepts no connection before it is ready. With TLS this is no request, and what comes may be an end.
    pollfd entry{socket.get(), POLLIN, 0};
    if (::poll(&entry, 1, testing_lrpc::kPatienceMs) != 1) return;
    char first = 0;
    answered = ::recv(socket.get(), &first, 1, 0) == 1 || scheme_ == "https";
  });
  return answered && !has_ended();
}

// ---- several members ----

EtcdCluster::EtcdCluster() {
  for (int tries = 0; tries < 10; ++tries)
    if (start()) return;
  throw std::runtime_error("three members of etcd do not start:\n" + members_.front()->log());
}

bool EtcdCluster::start() {
  members_.clear();
  std::string all;
  for (std::size_t i = 0; i < kMembers; ++i) {
    const std::string name = "m" + std::to_string(i);
    const int port = free_port();
    members_.emplace_back(new EtcdServer(port, {"--name", name}));
    all += (i == 0 ? "" : ",") + name + "=" + members_.back()->peer_url(port);
  }
  for (const auto& one : members_) {  // behind the option for one member alone, which it replaces
    one->options_.insert(one->options_.end(), {"--initial-cluster", all});
    one->spawn_at(one->port_);
  }
  return std::ranges::all_of(members_, [](const auto& one) { return one->begins_to_serve(one->port_); });
}

EtcdOptions EtcdCluster::options() const {
  EtcdOptions options = members_.front()->options();
  options.endpoints.clear();
  for (const auto& one : members_) options.endpoints.push_back(one->url());
  return options;
}

}  // namespace lrpc::directory::test
