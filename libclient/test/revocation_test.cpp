// How a program is notified that a binding was revoked: by a descriptor, and by functions.
#include "lrpc/detail/client/binding/revocation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::client {
namespace {

bool readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(RevocationNews, the_signal_makes_the_descriptor_readable_for_good) {
  std::atomic<bool> revoked{false};
  RevocationNews news;
  const int fd = news.descriptor(revoked).value();
  EXPECT_FALSE(readable(fd));
  EXPECT_EQ(news.descriptor(revoked).value(), fd) << "there is one";
  revoked = true;
  news.signal();
  EXPECT_TRUE(readable(fd));
  news.signal();
  EXPECT_TRUE(readable(fd));
}

TEST(RevocationNews, a_descriptor_made_after_the_end_is_readable) {
  const std::atomic<bool> revoked{true};
  RevocationNews news;
  news.signal();  // there is no descriptor yet
  EXPECT_TRUE(readable(news.descriptor(revoked).value()));
}

TEST(RevocationNews, the_descriptor_is_closed_with_the_binding) {
  const std::atomic<bool> revoked{false};
  int fd = -1;
  {
    RevocationNews news;
    fd = news.descriptor(revoked).value();
    EXPECT_GE(::fcntl(fd, F_GETFD), 0);
    EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
  EXPECT_LT(::fcntl(fd, F_GETFD), 0);
}

TEST(RevocationNews, a_fork_child_gets_a_readable_descriptor_of_its_own) {
  const std::atomic<bool> revoked{false};
  RevocationNews news;
  news.forget_after_fork();  // does nothing if there is no descriptor
  const int fd = news.descriptor(revoked).value();
  const UniqueFd parents(::dup(fd));  // stands for the parent's copy, which is the same open file
  news.forget_after_fork();
  EXPECT_TRUE(readable(fd));
  EXPECT_FALSE(readable(parents.get()));
  EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(RevocationNews, functions_are_called_in_their_order_and_once) {
  RevocationNews news;
  std::string called;
  news.call([&] { called += 'a'; });
  news.call([&] { called += 'b'; });
  EXPECT_EQ(called, "");
  news.tell();
  EXPECT_EQ(called, "ab");
  news.tell();
  EXPECT_EQ(called, "ab");
  news.call([&] { called += 'c'; });
  EXPECT_EQ(called, "abc") << "one that comes later is called at once";
  news.call([] { throw std::runtime_error("thrown by a test"); });
}

TEST(RevocationNews, a_function_that_throws_does_not_stop_the_others) {
  RevocationNews news;
  bool called = false;
  news.call([] { throw std::runtime_error("thrown by a test"); });
  news.call([&] { called = true; });
  news.tell();
  EXPECT_TRUE(called);
}

TEST(RevocationNews, a_function_that_another_one_adds_is_called_after_all_those_before) {
  RevocationNews news;
  std::string called;
  news.call([&] {
    news.call([&] { called += 'c'; });
    called += 'a';
  });
  news.call([&] { called += 'b'; });
  news.tell();
  EXPECT_EQ(called, "abc");
}

TEST(RevocationNews, a_function_that_comes_while_others_are_called_is_called_after_them_on_their_thread) {
  RevocationNews news;
  std::string called;
  std::thread::id called_on;
  std::latch begun(1);
  std::latch added(1);
  news.call([&] {
    begun.count_down();
    added.wait();
    called += 'a';
  });
  std::thread teller([&] { news.tell(); });
  const std::thread::id teller_id = teller.get_id();
  begun.wait();
  news.call([&] {
    called += 'b';
    called_on = std::this_thread::get_id();
  });
  added.count_down();
  teller.join();
  EXPECT_EQ(called, "ab");
  EXPECT_EQ(called_on, teller_id);
}

}  // namespace
}  // namespace lrpc::client
