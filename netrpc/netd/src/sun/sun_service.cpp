#include "sun/sun_service.h"

#include <algorithm>
#include <new>
#include <utility>

#include "lrpc/detail/shim/system/of_this_thread.h"
#include "principal.h"

namespace lrpc::netd {
namespace {

using netrpc::Message;
using netrpc::Session;
using netrpc::Shepherd;

using Clock = sun::ServedProgram::Clock;

constexpr netrpc::Duration kSweepEvery = std::chrono::seconds(30);
/// A call ends this long after its arrival: by then its client has given up.
constexpr std::chrono::seconds kLimit{25};
/// Threads of all programs together, and the fewest of one program.
constexpr std::size_t kWorkers = 128;
constexpr std::size_t kFewest = 16;
/// Requests that are waiting or being served may take the host's buffers divided by this.
constexpr std::size_t kPartOfPool = 8;

void refuse(Session& session, Errc why) noexcept {
  netrpc::control::Request request = netrpc::control::Refuse{why};
  (void)session.control(request);
}

}  // namespace

SunService::Served::Served(const SunExport& export_as, sun::ServedOptions options, std::size_t threads,
                           SunService& service)
    : what(export_as),
      program(std::move(options)),
      workers(
          threads, threads, [this, &service](Command&& command) { service.serve_in_worker(*this, std::move(command)); },
          [](Rebooted) {}) {}

SunService::SunService(netrpc::Host& host, std::vector<netrpc::Protocol*> below, const Options& options)
    : Protocol(host, "lrpc-netd-sun"), below_(std::move(below)), sweep_([this] { sweep_later(); }) {
  const std::size_t count = std::max<std::size_t>(options.exports.size(), 1);
  for (const SunExport& what : options.exports) {
    sun::ServedOptions served;
    served.name = what.name;
    served.version = what.version;
    served.nameserver = options.nameserver;
    served.max_bindings = std::clamp<std::size_t>(options.max_bindings / count, 1, served.max_bindings);
    served.notice = options.notice;
    served_.push_back(std::make_unique<Served>(what, std::move(served), std::max(kWorkers / count, kFewest), *this));
  }
}

SunService::~SunService() { drop_left(); }

void SunService::drop_left() noexcept {
  for (const auto& one : served_) (void)one->workers.left();
}

Status SunService::enable() {
  for (netrpc::Protocol* const below : below_)
    for (const auto& one : served_) {
      netrpc::ParticipantSet participants;
      participants.local.program = one->what.program;
      participants.local.version = one->what.version;
      if (auto done = below->open_enable(*this, participants); !done) return done;
      enabled_.push_back({below, participants});
    }
  return {};
}

void SunService::serve() {
  const Shepherd inside(host().monitor());
  serving_ = true;
  sweep_later();
}

void SunService::stop_serving() noexcept {
  {
    const Shepherd inside(host().monitor());
    serving_ = false;
    host().events().cancel(sweep_);
    for (const Enabled& one : enabled_) one.below->open_disable(*this, one.participants);
    enabled_.clear();
  }
  for (const auto& one : served_) one->workers.stop();
  const Shepherd inside(host().monitor());
  drop_left();
}

/// Has a worker end unused bindings, for that takes a while.
void SunService::sweep_later() noexcept {
  for (const auto& one : served_) {
    Command nothing;
    (void)one->workers.put(nothing);
  }
  host().events().schedule(sweep_, kSweepEvery);
}

void SunService::call_demux(Session& lower, Message request) noexcept {
  const netrpc::Participant& called = lower.participants().local;
  const auto found = std::ranges::find_if(served_, [&](const auto& one) {
    return one->what.program == called.program && one->what.version == called.version;
  });
  if (found == served_.end()) return refuse(lower, Errc::name_unknown);
  if (!serving_) return refuse(lower, Errc::call_failed);                   // not yet, or no longer
  if (host().short_of_memory()) return refuse(lower, Errc::limit_reached);  // anybody may call, and from anywhere
  Served& served = **found;
  const std::size_t bytes = request.footprint();
  const std::size_t share = host().pool().limit() / kPartOfPool / served_.size();
  Command command{netrpc::SessionRef(&lower), std::move(request), {}, 0, 0, Clock::now()};
  try {
    command.from = principal_of(lower);
  } catch (const std::bad_alloc&) {
    return refuse(lower, Errc::limit_reached);
  }
  const netrpc::HostKey from{host().hash_seed(), netrpc::HostAddress{command.from.host}};
  // A single request is served, however large it is.
  if (served.buffers.taken() == 0 || served.buffers.has_room(from, bytes, share))
    command.part = served.buffers.take(from, bytes);
  if (!command.part || !served.workers.put(command)) refuse(lower, Errc::limit_reached);
}

void SunService::serve_in_worker(Served& served, Command command) noexcept {
  if (!command.session) return served.program.sweep(Clock::now());
  const Clock::time_point deadline = command.since + kLimit;
  Errc outcome = Errc::limit_reached;  // also if the call has waited until now
  sun::ServedProgram::Work* work = nullptr;
  try {
    work = &shim::OfThisThread<sun::ServedProgram::Work>::get();
    work->arguments.resize(command.request.size());
    command.request.copy_to(work->arguments);
    const std::uint32_t procedure = command.session->participants().local.procedure;
    if (Clock::now() < deadline)
      outcome = served.program.call(command.from, procedure, work->arguments, deadline, *work);
  } catch (const std::bad_alloc&) {
  }
  bool is_short = false;
  {
    const Shepherd inside(host().monitor());
    Message reply;
    if (outcome == Errc::ok) {
      reply = Message::copy_of_long(host().pool(), work->results.bytes());
      if (!reply.allocated()) outcome = Errc::limit_reached;
    }
    outcome == Errc::ok ? command.session->reply(std::move(reply)) : refuse(*command.session, outcome);
    command = {};
    is_short = host().short_of_memory();
  }
  if (work == nullptr) return;
  work->shed();
  if (is_short) *work = {};  // idle threads keep no memory then
}

}  // namespace lrpc::netd
