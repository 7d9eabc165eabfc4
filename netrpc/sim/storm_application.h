// What runs on each host of the storm: a client with some calls at a time, and the server that everybody calls. Private
// to the simulation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "netrpc/sim/storm.h"
#include "netrpc/src/spares.h"

namespace lrpc::netrpc::storm {

/// What the whole world knows of a call.
struct CallRecord {
  enum class State : std::uint8_t { none, under_way, ended, abandoned };
  State state = State::none;
  std::uint8_t executions = 0;
  bool must_not_execute = false;  ///< The client was told that it was not executed.
  std::uint16_t client = 0;
  std::uint16_t server = 0;
  Time must_end = Time::max();  ///< Its timeout, and some time more.
};

/// The calls and what was found wrong with them. Outlives every host.
class Ledger {
 public:
  Ledger(SimWorld& world, const StormOptions& options, StormReport& report)
      : world_(world), options_(options), report_(report), records_(options.calls + 1) {}

  /// `call`: the number of a new call. False: all have been made.
  [[nodiscard]] bool begin(std::uint16_t client, std::uint16_t server, std::uint64_t& call);
  /// The call has this timeout.
  void limited(std::uint64_t call, Duration timeout) { records_[call].must_end = world_.now() + timeout + timeout / 4; }
  void executed(std::uint64_t call, std::uint16_t server, bool right_request);
  void ended(std::uint64_t call, Errc outcome, bool right_reply);
  void abandoned(std::uint64_t call);
  [[nodiscard]] bool all_ended() const noexcept { return begun_ == options_.calls && under_way_ == 0; }
  /// Reports the calls that are still under way as hung, and callers that have stopped before all calls were made.
  void find_hung();
  /// Reports a violation if too many calls have ended without an answer.
  void count_failed(std::uint64_t crashes);
  void violation(std::string text);
  [[nodiscard]] std::string name(std::uint64_t call) const;
  [[nodiscard]] const StormOptions& options() const noexcept { return options_; }
  [[nodiscard]] SimWorld& world() const noexcept { return world_; }
  [[nodiscard]] bool corrupts() const noexcept { return options_.link.corrupt > 0 && !options_.finds_corruption; }

 private:
  SimWorld& world_;
  const StormOptions& options_;
  StormReport& report_;
  std::vector<CallRecord> records_;
  std::uint64_t begun_ = 0;
  std::uint64_t under_way_ = 0;
};

/// Lives as long as its host's life.
class StormApplication final : public Protocol {
 public:
  static constexpr ProtocolNumber kNumber = protocol_numbers::kFirstOfTests;
  static constexpr std::uint16_t kCommand = 7;

  StormApplication(Host& host, Ledger& ledger, SimHost& machine, Protocol& top);
  ~StormApplication() override;

  /// Begins to call.
  void start();
  /// Releases all sessions; no call may be under way.
  void close();
  void call_demux(Session& lower, Message request) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  /// One call at a time.
  struct Caller final : Transaction {
    explicit Caller(StormApplication& owner) : application(owner), again([this] { application.next(*this); }) {}
    void completed(Errc outcome, Message reply) noexcept override {
      application.completed(*this, outcome, std::move(reply));
    }
    StormApplication& application;
    std::uint64_t call = 0;
    std::size_t reply_size = 0;
    SessionRef session;  ///< While a call is under way.
    bool starting = false;
    bool ended = false;
    Event again;
  };
  /// A reply that is sent some time after the request.
  struct LateReply {
    explicit LateReply(StormApplication& owner) : application(owner), due([this] { application.reply_late(*this); }) {}
    StormApplication& application;
    SessionRef session;
    Message message;
    Event due;
  };

  void next(Caller& caller);
  void completed(Caller& caller, Errc outcome, Message reply) noexcept;
  void reply_late(LateReply& late);
  [[nodiscard]] Message make_message(std::uint64_t call, std::uint32_t reply_size, std::uint32_t delay,
                                     std::size_t size, std::uint64_t salt);
  [[nodiscard]] std::size_t draw_size();

  Ledger& ledger_;
  SimHost& machine_;
  Protocol& top_;
  std::size_t largest_ = 0;
  std::vector<std::uint16_t> peers_;
  std::vector<SessionRef> sessions_;  ///< By place in peers_.
  std::vector<std::unique_ptr<Caller>> callers_;
  Spares<LateReply> late_;
};

}  // namespace lrpc::netrpc::storm
