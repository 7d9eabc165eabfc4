// Events of a watched descriptor that a thread's ring recorded while another thread led.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "engines.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::netrpc::test {
namespace {

/// Reads a byte at each notification, and notes how many kernel waits leaders had made by then.
class Reads final : public SocketReader {
 public:
  Reads(UringEngine& engine, int fd) : engine_(engine), fd_(fd) {}
  void arrived(Message, std::span<const std::byte>) noexcept override { ADD_FAILURE(); }
  void send_failed(int) noexcept override { ADD_FAILURE(); }
  void readable() noexcept override {
    char byte = 0;
    if (::read(fd_, &byte, 1) != 1) return;
    ++read;
    waits = engine_.statistics().waits;
  }
  int read = 0;
  std::uint64_t waits = 0;

 private:
  UringEngine& engine_;
  const int fd_;
};

class EarlierNews : public Engines {
 protected:
  void SetUp() override {
    Engines::SetUp();
    if (IsSkipped()) return;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    pipe_ = UniqueFd(ends[1]);
    reader_ = std::make_unique<Reads>(a_->engine(), ends[0]);
    a_->inside([&] { watched_ = a_->engine().watch(**a_, ends[0], *reader_); });
  }
  void TearDown() override {
    if (reader_ != nullptr) a_->inside([&] { a_->engine().remove(watched_); });
    Engines::TearDown();
  }
  void write(const char* text, std::size_t size) {
    EXPECT_EQ(::write(pipe_.get(), text, size), static_cast<ssize_t>(size));
  }
  /// This thread leads until `done`. Once it waits, another thread runs `meanwhile` inside the monitor.
  void lead(const std::function<bool()>& done, const std::function<void()>& meanwhile) {
    std::atomic<bool> leads{false};
    std::thread other([&] {
      while (!leads) std::this_thread::yield();
      const Shepherd inside((*a_)->monitor());  // is free only while the leader waits
      meanwhile();
    });
    EXPECT_TRUE(a_->wait([&] {
      leads = true;
      return done();
    }));
    other.join();
  }

  UniqueFd pipe_;
  std::unique_ptr<Reads> reader_;
  SocketId watched_;
};

TEST_P(EarlierNews, is_taken_before_the_thread_waits) {
  bool over = false;
  lead([&] { return over; },
       [&] {
         over = true;
         a_->engine().wake(**a_);
       });
  write("ab", 2);  // this thread's ring still polls the pipe
  std::thread([&] { EXPECT_TRUE(a_->wait([&] { return reader_->read == 1; })); }).join();
  const std::uint64_t waits = a_->engine().statistics().waits;
  EXPECT_TRUE(a_->wait([&] { return reader_->read == 2; }));
  EXPECT_EQ(reader_->waits, waits);
}

TEST_P(EarlierNews, is_none_that_comes_while_the_thread_leads) {
  std::uint64_t waits = 0;
  Event event([&] {
    write("a", 1);
    waits = a_->engine().statistics().waits;
  });
  lead([&] { return reader_->read == 1; }, [&] { (*a_)->events().schedule(event, Duration(0)); });
  EXPECT_EQ(reader_->waits, waits + 1) << "to poll for it has paid";
}

INSTANTIATE_TEST_SUITE_P(, EarlierNews, testing::Values(EngineKind::uring), [](const auto&) { return "uring"; });

}  // namespace
}  // namespace lrpc::netrpc::test
