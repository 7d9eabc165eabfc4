// One strategy's processes in a cell of the scenario matrix: a server, and one or two clients that call it when it is
// their turn, and otherwise sleep.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "core/contender.h"
#include "core/matrix_cell.h"
#include "core/ticks.h"
#include "core/turns.h"
#include "load/hog.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "report/histogram.h"

namespace lrpc::bench {

class LrpcDomains;

/// How a call is made: through a gate of lrpc, or by plain futexes, without lrpc.
enum class Strategy { exchange, handoff, sleep, adaptive, plain_futex };
[[nodiscard]] std::string_view name(Strategy strategy) noexcept;

/// Where the calls of a slice are counted. The best fixed strategy is chosen by other rounds than those that judge.
enum class Book : std::uint32_t { choosing = 0, judging = 1, none };

/// What a team is asked to do in its turn.
struct Slice {
  std::chrono::nanoseconds untimed{};  ///< How long to call first, uncounted.
  std::chrono::nanoseconds timed{};    ///< For how long each call is then timed and counted; at least one call.
  std::uint64_t most_untimed = ~std::uint64_t{0};
  Book book = Book::none;
};

/// One process of a team, and its role.
struct TeamProcess {
  std::string_view what;
  pid_t pid;
};

/// Constructed in the bench's own process, while that has one thread.
class Team {
 public:
  /// Starts the server and the clients, and binds. Returns once all have connected. `around` must outlive the team.
  static Result<std::unique_ptr<Team>> create(Strategy strategy, const Cell& cell, const Cores& cores,
                                              const Surroundings& around, const TickClock& clock);

  /// Lets all clients call at the same time, and waits until they are done and the server has parked.
  Status run(const Slice& slice);
  [[nodiscard]] Strategy strategy() const noexcept { return strategy_; }
  /// The times of all clients' calls so far, in ticks.
  [[nodiscard]] Histogram counted(Book book) const;
  /// The nameserver, the server and the clients; for plain futexes only the clients.
  [[nodiscard]] std::vector<TeamProcess> processes() const;

 private:
  struct Desk {
    TurnDesk turns;
    Slice slice;
    std::array<Histogram, 2> books;
  };
  struct Client {
    std::unique_ptr<Contender> contender;
    TurnTaker<Desk> process;  // destroyed before its server, so that it does not see its peer die
  };
  explicit Team(Strategy strategy) : strategy_(strategy) {}
  static Result<TurnTaker<Desk>> start_client(Contender& contender, const Seat& seat, const Cell& cell,
                                              const TickClock& clock);
  Status await(std::chrono::nanoseconds at_least);

  Strategy strategy_;
  std::shared_ptr<LrpcDomains> domains_;  ///< Null for plain futexes.
  std::vector<Client> clients_;           // destroyed before the server
};

}  // namespace lrpc::bench
