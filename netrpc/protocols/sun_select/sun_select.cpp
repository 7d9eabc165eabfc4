#include "netrpc/protocols/sun_select/sun_select.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cells.h"
#include "header_room.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/wire.h"
#include "netrpc/protocols/sun_call/rpc_message.h"
#include "reply_layer.h"

namespace lrpc::netrpc {

namespace sun {
namespace {

/// accept_stat. Only replies have it, so this layer takes nothing of a request's size.
constexpr std::size_t kHeader = 4;
/// Results up to this size are sent without asking whether the layers below carry them.
constexpr std::size_t kSurelyFits = 1024;

AcceptStat accept_stat(Errc reason) noexcept {
  switch (reason) {
    case Errc::name_unknown: return AcceptStat::prog_unavail;
    case Errc::bad_procedure: return AcceptStat::proc_unavail;
    case Errc::argument_out_of_range: return AcceptStat::garbage_args;
    default: return AcceptStat::system_err;
  }
}

/// The server's end: one request, from its arrival to its reply.
class SunRequest final : public Session {
 public:
  SunRequest(Protocol& protocol, Protocol& high, const ParticipantSet& participants, Session& lower) noexcept
      : Session(protocol, high, participants), lower_(&lower) {
    control::ClaimedUser user;
    if (control::ask(lower, user) == Errc::ok) user_ = user;
  }
  void reply(Message message) noexcept override { finish(AcceptStat::success, std::move(message)); }
  /// Answers. Only the first call does something.
  void finish(AcceptStat stat, Message&& results) noexcept {
    if (std::exchange(answered_, true)) return;
    if (results.size() > kSurelyFits && too_long(results)) {
      stat = AcceptStat::system_err;
      results.clear();
    }
    if (std::byte* const to = push_reply_header(results, protocol().host().pool(), kHeader))
      WireWriter(to).put(static_cast<std::uint32_t>(stat));
    lower_->reply(std::move(results));
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  void unreferenced() noexcept override;
  [[nodiscard]] bool too_long(const Message& results) noexcept {
    control::MaximumMessage maximum;
    // The maximum is that of a request, whose headers are longer than a reply's and accept_stat together.
    return control::ask(*lower_, maximum) == Errc::ok && results.size() > maximum.size;
  }
  SessionRef lower_;
  std::optional<control::ClaimedUser> user_;  ///< Copied: the layer below knows it only while the request goes up.
  bool answered_ = false;
};

/// As a ReplyLayer it sees the replies to a client's calls. At the server, each request gets a SunRequest.
class SunSelect final : public ReplyLayer {
 public:
  SunSelect(Host& host, std::string name, Protocol& below, const SunSelectOptions& options)
      : ReplyLayer(host, std::move(name), below), options_(options) {}
  ~SunSelect() override {
    if (!servers_.empty()) below().open_disable(*this, {});
  }

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    ParticipantSet whole = participants;
    if (Status status = name_procedure(whole.remote, true); !status) return status.error();
    return ReplyLayer::open(high, whole);
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    Participant local = participants.local;
    if (Status status = name_procedure(local, false); !status) return status;
    const auto key = ProcedureKey::of(local);
    if (Protocol** const known = servers_.resolve(key); known != nullptr && *known != &high)
      return Error{Errc::name_taken, name() + ": procedure " + std::to_string(key.procedure) + " of program " +
                                         std::to_string(key.program) + " is served already"};
    // Only this layer stands above the one below, so requests that nobody serves come up here, too, and are answered.
    if (servers_.empty())
      if (Status status = below().open_enable(*this, {}); !status) return status;
    servers_.bind(key, &high);
    return {};
  }
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override {
    Participant local = participants.local;
    if (!name_procedure(local, false)) return;
    if (servers_.unbind(ProcedureKey::of(local), &high) && servers_.empty()) below().open_disable(*this, {});
  }
  void call_demux(Session& lower, Message request) noexcept override {
    ParticipantSet participants = lower.participants();
    Participant& local = participants.local;
    local.command = local.procedure <= UINT16_MAX ? static_cast<std::uint16_t>(local.procedure) : 0;
    Protocol* const server = local.procedure != 0 ? server_of(local) : nullptr;
    SunRequest* const made = requests_.make(*this, server != nullptr ? *server : *this, participants, lower);
    if (made == nullptr) {
      ++counted.refused;
      request.clear();
      return lower.reply(Message(host().pool()));  // without accept_stat: the call has failed
    }
    const SessionRef keep(made);
    if (server != nullptr) {
      ++counted.received;
      return server->call_demux(*made, std::move(request));
    }
    request.clear();
    answer_unserved(*made, local);
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (told_statistics(request, sessions() + requests_.in_use())) return Errc::ok;
    return ReplyLayer::control(request);
  }

 private:
  friend class SunRequest;

  Errc pass_completed(TransparentSession& /*session*/, Time /*begun*/, Errc outcome, Message& reply) noexcept override {
    if (outcome != Errc::ok) return outcome;
    Message::Header<kHeader> raw;
    reply.pop(raw);
    return raw ? outcome_of(WireReader(raw.bytes).get<std::uint32_t>()) : Errc::call_failed;
  }
  /// Replaces a command by that procedure of the program in the options. Command 0 serves all, and cannot be called.
  [[nodiscard]] Status name_procedure(Participant& participant, bool calls) const {
    if (participant.program != 0) return {};
    if (options_.program == 0)
      return Error{Errc::invalid_argument, name() + ": the program is missing, here and in its options"};
    if (calls && participant.command == 0)
      return Error{Errc::invalid_argument, name() + ": neither a program nor a command is given"};
    participant.program = options_.program;
    participant.version = options_.version;
    participant.procedure = participant.command;
    return {};
  }
  [[nodiscard]] Protocol* server_of(const Participant& local) noexcept {
    if (Protocol** const exact = servers_.resolve(ProcedureKey::of(local))) return *exact;
    const bool commands = local.program == options_.program && local.version == options_.version;
    if (commands && local.procedure > UINT16_MAX) return nullptr;  // no command has that number
    Protocol** const all = servers_.resolve({local.program, local.version, 0});
    return all != nullptr ? *all : nullptr;
  }
  /// Procedure 0 is answered here, too: it does nothing.
  void answer_unserved(SunRequest& request, const Participant& local) noexcept {
    // The versions of the program that are served here. `lowest` above `highest`: none is.
    std::uint32_t lowest = UINT32_MAX;
    std::uint32_t highest = 0;
    bool this_version = false;
    servers_.for_each([&](const ProcedureKey& key, Protocol*) {
      if (key.program != local.program) return;
      lowest = std::min(lowest, key.version);
      highest = std::max(highest, key.version);
      this_version = this_version || key.version == local.version;
    });
    Message message(host().pool());
    if (this_version && local.procedure == 0) {
      ++counted.received;
      return request.finish(AcceptStat::success, std::move(message));
    }
    ++counted.no_session;
    if (this_version) return request.finish(AcceptStat::proc_unavail, std::move(message));
    if (lowest > highest) return request.finish(AcceptStat::prog_unavail, std::move(message));
    if (std::byte* const to = message.push(8)) WireWriter(to).put(lowest).put(highest);
    request.finish(AcceptStat::prog_mismatch, std::move(message));
  }

  const SunSelectOptions options_;
  Map<ProcedureKey, Protocol*> servers_;  ///< Procedure 0: for all others.
  Cells<SunRequest> requests_;
};

Errc SunRequest::control(control::Request& request) noexcept {
  if (auto* const refuse = std::get_if<control::Refuse>(&request)) {
    ++static_cast<SunSelect&>(protocol()).counted.refused;
    finish(accept_stat(refuse->reason), {});
    return Errc::ok;
  }
  if (std::holds_alternative<control::ClaimedUser>(request))
    return user_ && control::answered(request, *user_) ? Errc::ok : Errc::not_supported;
  return lower_->control(request);
}

void SunRequest::unreferenced() noexcept {
  finish(AcceptStat::system_err, {});  // if the server dropped it without a reply: CHANNEL waits for one
  static_cast<SunSelect&>(protocol()).requests_.destroy(*this);
}

}  // namespace
}  // namespace sun

std::unique_ptr<Protocol> make_sun_select(Host& host, std::string name, Protocol& below,
                                          const SunSelectOptions& options) {
  return std::make_unique<sun::SunSelect>(host, std::move(name), below, options);
}

ProtocolKind sun_select_kind() {
  return {.name = "SUN_SELECT",
          .summary = "Sun RPC's selection of the server, and what became of a call",
          .gives = Service::transaction,
          .tells_ports_apart = true,
          .below = {{"AUTH_NONE, AUTH_SYS, or SUN_CALL alone", Service::transaction}},
          .options = {{"program", OptionType::number,
                       "of which users' commands are procedures; default: users name a program"},
                      {"version", OptionType::number, "of that program; default 1"}},
          .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            SunSelectOptions options;
            const std::uint64_t program = parts.options.number("program", options.program);
            const std::uint64_t version = parts.options.number("version", options.version);
            if (program > UINT32_MAX || version > UINT32_MAX)
              return Error{Errc::invalid_argument, "program and version have 32 bits"};
            options.program = static_cast<std::uint32_t>(program);
            options.version = static_cast<std::uint32_t>(version);
            return make_sun_select(parts.host, parts.name, *parts.below.front(), options);
          }};
}

}  // namespace lrpc::netrpc
