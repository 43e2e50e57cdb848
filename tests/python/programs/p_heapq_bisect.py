import bisect
import heapq

h = [5, 1, 8, 3]
heapq.heapify(h)
heapq.heappush(h, 0)
print([heapq.heappop(h) for _ in range(len(h))], heapq.nlargest(2, [4, 9, 2]), list(heapq.merge([1, 4], [2, 3])))
scores = [10, 20, 30]
bisect.insort(scores, 25)
print(scores, bisect.bisect_left(scores, 20), bisect.bisect_right(scores, 20))
