#include "raw_binding.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <stdexcept>
#include <thread>
#include <utility>

#include "conformance.types.h"
#include "lrpc/detail/shim/call/gates.h"
#include "private_answer.h"

namespace testing_lrpc {

namespace shim = lrpc::shim;

shim::BinderMessage import_request(std::string name, shim::Gate gate) {
  const lrpc::InterfaceId& id = Conformance::kPdl.interface;
  shim::BinderMessage message;
  message.request = 1;
  message.body = shim::ImportRequest{.name = std::move(name),
                                     .interface = {std::string(id.name), id.major, id.minor, id.hash},
                                     .timeout_ms = 0,
                                     .gate = gate};
  return message;
}

shim::BinderMessage conformance_answer(std::uint32_t request) {
  return bound_answer(Conformance::kPdl.classes, request);
}

shim::RegionLayout conformance_layout() {
  auto layout = shim::RegionLayout::of(Conformance::kPdl.classes);
  if (!layout) throw std::runtime_error(layout.error().message());
  return *std::move(layout);
}

lrpc::UniqueFd duplicate(int fd) { return lrpc::UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

RawBinding::RawBinding(const std::string& nameserver, std::string name, shim::Gate gate) {
  auto socket = shim::connect_nameserver(nameserver);
  if (!socket) throw std::runtime_error(socket.error().message());
  bind(socket->get(), std::move(name), gate);
}

RawBinding::RawBinding(int socket, shim::Gate gate) { bind(socket, {}, gate); }

void RawBinding::bind(int socket, std::string name, shim::Gate gate) {
  if (auto sent = shim::send_message(socket, import_request(std::move(name), gate)); !sent) {
    throw std::runtime_error(sent.error().message());
  }
  auto answer = shim::receive_message(socket, std::chrono::minutes(4));
  if (!answer) throw std::runtime_error(answer.error().message());
  if (!answer->has_value()) throw std::runtime_error("no answer");
  if (!std::holds_alternative<shim::Bound>((*answer)->body)) throw std::runtime_error("not bound");
  auto region = shim::Region::map(std::move((*answer)->fds.front()), conformance_layout());
  if (!region) throw std::runtime_error(region.error().message());
  region_ = *std::move(region);
  bell_ = std::move((*answer)->fds.back());
  generations_.resize(region_.layout().astack_count());
}

void RawBinding::hang_up() noexcept { (void)shutdown(bell_.get(), SHUT_RDWR); }

void RawBinding::ring(std::uint32_t astack, std::uint16_t procedure) {
  ring_only(astack, procedure);
  wake(astack);
}

void RawBinding::ring_only(std::uint32_t astack, std::uint16_t procedure) {
  (void)shim::ring_handoff(*region_.astack(astack).head,
                           shim::CallWord::called(++generations_[astack], procedure, shim::kNoProcessor));
}

void RawBinding::wake(std::uint32_t astack) {
  shim::futex_wake(region_.astack(astack).head->word, shim::Sleeper::estack);
  (void)send(bell_.get(), "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::optional<std::uint16_t> RawBinding::returned(std::uint32_t astack) const {
  const shim::CallWord word = shim::load_word(*region_.astack(astack).head);
  if (!word.is(shim::Turn::returned, generations_[astack])) return std::nullopt;
  return word.status();
}

std::optional<std::uint16_t> RawBinding::call(std::uint32_t astack, std::uint16_t procedure,
                                              std::chrono::milliseconds patience) {
  ring(astack, procedure);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    if (const auto status = returned(astack)) return status;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return std::nullopt;
}

}  // namespace testing_lrpc
