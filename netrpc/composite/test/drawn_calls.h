// A legal composition for group RPC, and the faults that it must survive, drawn at random.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/two.h"

namespace lrpc::netrpc::composite {

enum class Orphans : std::uint8_t { no_policy, avoid_interference, terminate };
enum class Partitions : std::uint8_t { none, brief, of_seconds };

struct Drawn {
  std::size_t members = 1;
  bool push = false;
  int accept = 0;    ///< 0: ONE_ACCEPT, 1: ALL_ACCEPT, 2: MAJORITY.
  Duration limit{};  ///< Of BOUNDED. Zero: UNBOUNDED, or neither.
  bool says_unbounded = false;
  Duration timeout{};  ///< Of every fourth call, or of most calls if nothing else ends them. Zero: of none.
  bool number = false;
  bool unique = false;
  bool fifo = false;
  bool ack = false;
  bool membership = false;
  bool still_working = false;
  bool reply_order = false;
  Orphans orphans = Orphans::no_policy;
  bool atomic = false;
  bool crashes = false;
  bool pauses = false;
  Partitions partitions = Partitions::none;
  std::size_t threads = 0;  ///< Handler threads.

  explicit Drawn(std::mt19937_64& random) {
    const auto coin = [&] { return random() % 2 == 0; };
    members = 1 + random() % 5;
    push = coin();
    accept = static_cast<int>(random() % 3);
    limit = std::chrono::seconds(coin() ? 0 : coin() ? 60 : 2);
    says_unbounded = coin();
    number = coin();
    unique = number && coin();
    fifo = number && coin();
    ack = number && coin();
    membership = ack && coin();
    still_working = coin();
    timeout = std::chrono::milliseconds(coin() ? 500 : ends() ? 0 : 5000);
    reply_order = coin();
    orphans = static_cast<Orphans>(random() % 3);
    atomic = coin();
    crashes = coin();
    pauses = coin();
    partitions = static_cast<Partitions>(random() % 3);
    threads = random() % 4 == 0 ? 3 : 0;
  }
  [[nodiscard]] bool bounded() const { return limit != Duration(); }
  /// Whether each call ends without a timeout of its caller, as long as servers do not work for ever.
  [[nodiscard]] bool ends() const { return bounded() || still_working; }
  /// Of FIFO. Longer than a server keeps a request: after that time FIFO delivers the requests that it holds, without
  /// waiting for those before them.
  [[nodiscard]] Duration patience() const {
    return std::chrono::seconds(ack || partitions == Partitions::of_seconds ? 30 : 3);
  }
  /// The limit is too short for ACK to find dead members.
  [[nodiscard]] bool short_limit() const { return limit == std::chrono::seconds(2); }
  [[nodiscard]] std::vector<Part> parts() const {
    std::vector<Part> all{part(grpc_kind()), part(push ? async_kind() : sync_kind()),
                          part(accept == 0   ? one_accept_kind()
                               : accept == 1 ? all_accept_kind()
                                             : majority_kind())};
    if (bounded()) all.push_back(part(bounded_kind(), {{"limit", short_limit() ? "2s" : "60s"}}));
    if (!bounded() && says_unbounded) all.push_back(part(unbounded_kind()));
    if (number) all.push_back(part(number_kind()));
    if (unique) all.push_back(part(unique_kind()));
    if (fifo)
      all.push_back(part(fifo_kind(), {{"patience", std::to_string(patience() / std::chrono::seconds(1)) + "s"}}));
    if (ack) all.push_back(part(ack_kind(), {{"tries", "50"}}));
    if (still_working) all.push_back(part(still_working_kind()));
    if (reply_order) all.push_back(part(reply_order_kind()));
    if (orphans == Orphans::avoid_interference) all.push_back(part(avoid_interference_kind()));
    if (orphans == Orphans::terminate) all.push_back(part(terminate_orphans_kind()));
    if (atomic) all.push_back(part(atomic_kind()));
    if (membership) all.push_back(part(membership_kind()));
    return all;
  }
  [[nodiscard]] std::string text() const {
    std::string all = std::to_string(members) + " members";
    for (const Part& one : parts()) all += " " + one.kind.name;
    return all + (crashes ? ", crashes" : "") + (pauses ? ", pauses" : "") +
           (partitions != Partitions::none ? ", partitions" : "") + (threads != 0 ? ", threads" : "");
  }
  [[nodiscard]] std::size_t needed() const { return accept == 2 ? members / 2 + 1 : 1; }
  /// ACK retries for long enough: calls without a timeout succeed, unless a host crashes or a server refuses.
  [[nodiscard]] bool lasting() const {
    return ack && !short_limit() && partitions != Partitions::of_seconds &&
           !(still_working && partitions != Partitions::none);  // a partition may cut off all STILL_WORKING messages
  }
};

}  // namespace lrpc::netrpc::composite
