#include "lrpc/nameserver.h"

#include "core.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/thread.h"
#include "options.h"

namespace lrpc::nameserver {

/// In order of construction: the core uses the loop, the thread uses both.
struct Nameserver::Parts {
  NameserverOptions options;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<Core> core;
  shim::Thread thread;
};

Nameserver::Nameserver(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}

Nameserver::~Nameserver() { stop(); }

Result<std::unique_ptr<Nameserver>> Nameserver::open(NameserverOptions options) {
  if (Status sound = check_options(options); !sound) return sound.error();
  shim::prepare_to_close_aside();
  auto parts = std::make_unique<Parts>();
  parts->options = std::move(options);
  cut_to_what_the_clock_can_tell(parts->options);
  NameserverOptions& chosen = parts->options;
  if (chosen.socket_path.empty()) chosen.socket_path = shim::nameserver_sockets().front();
  if (!chosen.policy) chosen.policy = default_policy();
  const mode_t mode = chosen.mode.value_or(chosen.socket_path == shim::kSystemSocket ? 0666 : 0600);

  auto loop = EventLoop::create(chosen.backend);
  if (!loop) return loop.error();
  parts->loop = std::move(*loop);
  auto listener = ListenSocket::open(chosen.socket_path, mode, chosen.stop_fd);
  if (!listener) return listener.error();
  parts->core = std::make_unique<Core>(*parts->loop, std::move(*listener), chosen);
  if (auto begun = parts->core->begin(); !begun) return begun.error();
  return std::unique_ptr<Nameserver>(new Nameserver(std::move(parts)));
}

Result<std::unique_ptr<Nameserver>> Nameserver::start(NameserverOptions options) {
  auto opened = open(std::move(options));
  if (!opened) return opened;
  Parts& parts = *(*opened)->parts_;
  const auto body = [](void* argument) -> void* {
    Parts& running = *static_cast<Parts*>(argument);
    if (auto ended = running.loop->run(); !ended && running.options.log)
      running.options.log(LogLevel::warning, "the nameserver has ended: " + ended.error().message());
    return nullptr;
  };
  if (auto started = parts.thread.start({.name = "lrpc-nameserver"}, body, &parts); !started) return started.error();
  return opened;
}

void Nameserver::set_policy(std::shared_ptr<Policy> policy) {
  parts_->core->set_policy(policy ? std::move(policy) : default_policy());
}

Status Nameserver::run() { return parts_->loop->run(); }

void Nameserver::stop() noexcept {
  parts_->loop->stop();
  parts_->thread.join();
}

const std::string& Nameserver::socket_path() const noexcept { return parts_->core->socket_path(); }

AllocatorStatistics Nameserver::allocator_statistics() const { return parts_->core->allocator_statistics(); }

std::string_view Nameserver::backend() const noexcept { return parts_->loop->name(); }

}  // namespace lrpc::nameserver
