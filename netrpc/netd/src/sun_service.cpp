#include "sun_service.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <utility>

#include "principal.h"

namespace lrpc::netd {
namespace {

using netrpc::Message;
using netrpc::Session;
using netrpc::Shepherd;

constexpr netrpc::Duration kSweepEvery = std::chrono::seconds(30);

std::optional<std::uint32_t> number_in(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void refuse(Session& session, Errc why) noexcept {
  netrpc::control::Request request = netrpc::control::Refuse{why};
  (void)session.control(request);
}

}  // namespace

Result<SunExport> parse_sun_export(const std::string& text) {
  SunExport parsed;
  const std::size_t equals = text.rfind('=');
  const std::size_t slash = equals == std::string::npos ? equals : text.find('/', equals);
  if (equals != std::string::npos) {
    parsed.name = text.substr(0, equals);
    const auto program = number_in(std::string_view(text).substr(equals + 1, slash - std::min(slash, equals + 1)));
    const auto version = slash == std::string::npos ? 1 : number_in(std::string_view(text).substr(slash + 1));
    parsed.program = program.value_or(0);
    if (version) parsed.version = *version;
    if (version && parsed.program != 0 && shim::valid_name(parsed.name) && !parsed.name.starts_with("lrpc."))
      return parsed;
  }
  return Error{Errc::invalid_argument, "'" + text + "': write NAME=PROGRAM or NAME=PROGRAM/VERSION"};
}

SunService::SunService(netrpc::Host& host, std::vector<netrpc::Protocol*> below, const Options& options)
    : Protocol(host, "lrpc-netd-sun"),
      below_(std::move(below)),
      sweep_([this] { sweep_later(); }),
      workers_(
          kWorkers, [this](Command&& command) { serve_in_worker(std::move(command)); }, [](Rebooted) {}) {
  for (const SunExport& what : options.exports) {
    sun::ServedOptions served;
    served.name = what.name;
    served.version = what.version;
    served.nameserver = options.nameserver;
    served.notice = options.notice;
    served_.push_back({what, std::make_unique<sun::ServedProgram>(std::move(served))});
  }
}

SunService::~SunService() {
  auto left = workers_.left();
  left.clear();
}

Status SunService::enable() {
  for (netrpc::Protocol* const below : below_)
    for (const Served& one : served_) {
      netrpc::ParticipantSet participants;
      participants.local.program = one.what.program;
      participants.local.version = one.what.version;
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
  workers_.stop();
  const Shepherd inside(host().monitor());
  auto left = workers_.left();
  left.clear();
}

/// Bindings end in a worker, for that takes a while.
void SunService::sweep_later() noexcept {
  Command command;
  command.number = kSweep;
  (void)workers_.put(command);
  host().events().schedule(sweep_, kSweepEvery);
}

void SunService::call_demux(Session& lower, Message request) noexcept {
  const netrpc::Participant& called = lower.participants().local;
  const auto found = std::ranges::find_if(served_, [&](const Served& one) {
    return one.what.program == called.program && one.what.version == called.version;
  });
  if (!serving_ || found == served_.end()) return refuse(lower, Errc::name_unknown);
  Command command{
      netrpc::SessionRef(&lower), std::move(request), {}, 0, static_cast<std::uint16_t>(found - served_.begin())};
  try {
    command.from = principal_of(lower);
  } catch (const std::bad_alloc&) {
    return refuse(lower, Errc::limit_reached);
  }
  if (!workers_.put(command)) refuse(lower, Errc::limit_reached);
}

void SunService::serve_in_worker(Command command) noexcept {
  if (command.number == kSweep) {
    for (const Served& one : served_) one.program->sweep(sun::ServedProgram::Clock::now());
    return;
  }
  thread_local sun::ServedProgram::Work work;
  thread_local std::vector<std::byte> arguments;
  Errc outcome = Errc::limit_reached;
  try {
    arguments.resize(command.request.size());
    command.request.copy_to(arguments);
    outcome = served_[command.number].program->call(command.from, command.session->participants().local.procedure,
                                                    arguments, work);
  } catch (const std::bad_alloc&) {
  }
  const Shepherd inside(host().monitor());
  Message reply;
  if (outcome == Errc::ok) {
    reply = Message::copy_of_long(host().pool(), work.results.bytes());
    if (!reply.allocated()) outcome = Errc::limit_reached;
  }
  outcome == Errc::ok ? command.session->reply(std::move(reply)) : refuse(*command.session, outcome);
  command.request.clear();
  command.session = {};
}

}  // namespace lrpc::netd
