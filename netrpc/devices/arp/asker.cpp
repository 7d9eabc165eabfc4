#include "netrpc/devices/arp/asker.h"

#include <new>
#include <utility>

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

Result<std::unique_ptr<Asker>> Asker::make(Host& host, UringEngine& engine) {
  std::unique_ptr<Asker> made(new Asker(engine));
  if (auto opened = made->kernel_.open(); !opened) return opened.error();
  int ends[2];  // not SOCK_DGRAM, which could send to every Unix datagram socket of the system by its path
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return system_error("socketpair", errno);
  made->wake_ = UniqueFd(ends[1]);
  made->answered_ = engine.add(host, ends[0], *made);
  return made;
}

Asker::~Asker() {
  engine_.remove(answered_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_.notify_one();
  thread_.join();
}

bool Asker::ask(Question question) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (questions_.size() >= kMost) return false;
    const auto body = [](void* asker) -> void* { return static_cast<Asker*>(asker)->run(), nullptr; };
    if (!thread_.running() && !thread_.start({.name = "lrpc-asker"}, body, this)) return false;
    questions_.push_back(std::move(question));
  } catch (const std::bad_alloc&) {
    return false;
  }
  more_.notify_one();
  return true;
}

void Asker::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    more_.wait(lock, [this] { return stopping_ || !questions_.empty(); });
    if (stopping_) return;
    const Question question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    Answer answer;
    attempt([&] { answer = question(kernel_); });  // without memory: as if the kernel had not answered
    lock.lock();
    if (!answer || !attempt([&] { answers_.push_back(std::move(answer)); })) continue;
    // Makes the engine call arrived(). If the socket has no room, it will do so for an earlier datagram.
    const std::byte byte{};
    (void)::send(wake_.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

void Asker::arrived(Message /*message*/, std::span<const std::byte> /*from*/) noexcept {
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    answers.swap(answers_);
  }
  for (const Answer& answer : answers) attempt(answer);
}

}  // namespace lrpc::netrpc
