#include "netrpc/protocols/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include "lrpc/netrpc/host.h"
#include "reply_layer.h"

namespace lrpc::netrpc {

namespace {

constexpr std::size_t kMostBytes = 64;

/// A line that is being written: on the stack, cut when it is full.
class Line {
 public:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const auto result =
        fmt::format_to_n(text_.data() + size_, text_.size() - size_, format, std::forward<Arguments>(arguments)...);
    size_ = std::min(size_ + result.size, text_.size());  // result.size is the length without the cut
  }
  void add_participants(const ParticipantSet& participants) {
    add(" {} {} -> {}", participants.protocol, to_string(participants.local.host), to_string(participants.remote.host));
    if (participants.remote.port != 0) add(":{}", participants.remote.port);
    for (const Participant* const end : {&participants.local, &participants.remote})
      if (end->program != 0) add(" program {:#x} version {} procedure {}", end->program, end->version, end->procedure);
  }
  void add_message(const Message& message, std::size_t most) {
    std::array<std::byte, kMostBytes> first;
    const std::size_t count = message.copy_to(std::span(first).first(most));
    add(", {} bytes", message.size());
    if (count > 0) add(":");
    for (std::size_t i = 0; i < count; ++i) add(" {:02x}", static_cast<unsigned>(first[i]));
    if (count > 0 && count < message.size()) add(" ...");
  }
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 512> text_;
  std::size_t size_ = 0;
};

class Trace final : public ReplyLayer {
 public:
  Trace(const InstanceParts& parts, TraceSink sink)
      : ReplyLayer(parts.host, parts.name, *parts.below.front()),
        sink_(std::move(sink)),
        bytes_(std::min<std::uint64_t>(parts.options.number("bytes", 16), kMostBytes)),
        lines_(parts.options.number("lines", 1000)) {}

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    Result<SessionRef> session = TransparentProtocol::open(high, participants);
    event("open", participants, session.code());
    return session;
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    Status status = TransparentProtocol::open_enable(high, participants);
    event("open_enable", participants, status.code());
    return status;
  }
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override {
    TransparentProtocol::open_disable(high, participants);
    event("open_disable", participants, Errc::ok);
  }
  Errc pass_open_done(TransparentSession& session, const ParticipantSet& participants) noexcept override {
    const Errc answer = TransparentProtocol::pass_open_done(session, participants);
    event("open_done", participants, answer);
    return answer;
  }
  Errc pass_push(TransparentSession& session, Message message) noexcept override {
    moved("push", session, message);
    const Errc outcome = TransparentProtocol::pass_push(session, std::move(message));
    if (outcome != Errc::ok) event("push", session.participants(), outcome);
    return outcome;
  }
  void pass_demux(TransparentSession& session, Message message) noexcept override {
    moved("demux", session, message);
    TransparentProtocol::pass_demux(session, std::move(message));
  }
  void pass_call_demux(TransparentSession& session, Message request) noexcept override {
    moved("call_demux", session, request);
    TransparentProtocol::pass_call_demux(session, std::move(request));
  }
  void pass_reply(TransparentSession& session, Message message) noexcept override {
    moved("reply", session, message);
    TransparentProtocol::pass_reply(session, std::move(message));
  }
  void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                 Duration timeout) noexcept override {
    moved("call", session, request);
    ReplyLayer::pass_call(session, std::move(request), transaction, timeout);
  }
  void pass_cancel(TransparentSession& session, Transaction& transaction) noexcept override {
    if (!outstanding(session, transaction)) return;
    const SessionRef keep(&session);
    ReplyLayer::pass_cancel(session, transaction);
    event("cancel", session.participants(), Errc::ok);
  }

 private:
  Errc pass_completed(TransparentSession& session, Time begun, Errc outcome, Message& reply) noexcept override {
    write("completed", session.participants(), [&](Line& line) {
      line.add(" after {} ns: {}", (host().now() - begun).count(), describe(outcome));
      if (outcome == Errc::ok) line.add_message(reply, bytes_);
    });
    return outcome;
  }

  void event(std::string_view what, const ParticipantSet& participants, Errc outcome) noexcept {
    write(what, participants, [&](Line& line) { line.add(": {}", describe(outcome)); });
  }
  void moved(std::string_view what, const Session& session, const Message& message) noexcept {
    write(what, session.participants(), [&](Line& line) { line.add_message(message, bytes_); });
  }
  template <class AddRest>
  void write(std::string_view what, const ParticipantSet& participants, AddRest add_rest) noexcept {
    Line line;
    if (!begin(line, what)) return;
    line.add_participants(participants);
    add_rest(line);
    show(line);
  }

  /// False: this second's lines are used up.
  bool begin(Line& line, std::string_view what) noexcept {
    const Time now = host().now();
    if (now - second_ >= std::chrono::seconds(1)) {
      const std::uint64_t left_out = std::exchange(left_out_, 0);
      second_ = now;
      shown_ = 0;
      if (left_out > 0) {
        Line note;
        head(note, now);
        note.add(" {} lines left out", left_out);
        show(note);
      }
    }
    if (shown_ == lines_) {
      ++left_out_;
      return false;
    }
    ++shown_;
    head(line, now);
    line.add(" {}", what);
    return true;
  }
  void head(Line& line, Time now) const {
    line.add("{:4}.{:09} {} {}", now.count() / 1'000'000'000, now.count() % 1'000'000'000, host().name(), name());
  }
  void show(const Line& line) const {
    if (sink_)
      sink_(line.text());
    else
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.text().size()), line.text().data());
  }

  TraceSink sink_;
  const std::size_t bytes_;
  const std::uint64_t lines_;
  Time second_ = Time(-1'000'000'000);
  std::uint64_t shown_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace

ProtocolKind trace_kind(TraceSink sink) {
  return {
      .name = "TRACE",
      .summary = "shows what goes through it",
      .transparent = true,
      .below = {{"the protocol to show the use of", Service::datagram}},
      .options = {{"bytes", OptionType::number, "how many of each message are shown, at most 64; 16", false},
                  {"lines", OptionType::number, "the most lines in a second; 1000", false}},
      .make = [sink = std::move(sink)](const InstanceParts& parts) { return std::make_unique<Trace>(parts, sink); }};
}

}  // namespace lrpc::netrpc
